//! Logins: SCRAM (RFC 5802, RFC 7677), and PLAIN (RFC 4616) over encrypted connections.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};
use secrecy::{ExposeSecret as _, SecretString};

/// The work that a server may ask for: enough that a password cannot be guessed (RFC 7677 names 4,096), and not so much that
/// it stops this program.
const ITERATIONS: std::ops::RangeInclusive<u32> = 4_096..=1_000_000;

/// A way to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mechanism {
    ScramSha256,
    ScramSha1,
    Plain,
}

impl Mechanism {
    const ALL: [Self; 3] = [Self::ScramSha256, Self::ScramSha1, Self::Plain];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha1 => "SCRAM-SHA-1",
            Self::Plain => "PLAIN",
        }
    }

    /// The best one that the server offers. The password itself is only sent where nobody can read it.
    pub(super) fn choose(offered: &[&str], is_encrypted: bool) -> Option<Self> {
        let mut usable = Self::ALL.into_iter().filter(|one| is_encrypted || *one != Self::Plain);
        usable.find(|one| offered.contains(&one.name()))
    }
}

/// The messages of a login.
pub(super) struct Login<'a> {
    mechanism: Mechanism,
    user: &'a str,
    password: &'a SecretString,
    nonce: String,
    /// What the server has to say at the end.
    proof: Option<String>,
}

impl<'a> Login<'a> {
    /// `nonce` is printable and not used twice.
    pub(super) fn new(
        mechanism: Mechanism,
        user: &'a str,
        password: &'a SecretString,
        nonce: String,
    ) -> Self {
        Self { mechanism, user, password, nonce, proof: None }
    }

    fn first_bare(&self) -> String {
        let user = self.user.replace('=', "=3D").replace(',', "=2C");
        format!("n={user},r={}", self.nonce)
    }

    /// The first message.
    pub(super) fn first(&self) -> String {
        let message = match self.mechanism {
            Mechanism::Plain => format!("\0{}\0{}", self.user, self.password.expose_secret()),
            _ => format!("n,,{}", self.first_bare()),
        };
        STANDARD.encode(message)
    }

    /// The answer to a challenge.
    ///
    /// # Errors
    /// It is not one that the mechanism has; why.
    pub(super) fn answer(&mut self, challenge: &str) -> Result<String, String> {
        let server_first = decoded(challenge)?;
        if self.mechanism == Mechanism::Plain || self.proof.is_some() {
            // The server's proof can come as a challenge too.
            self.check(challenge)?;
            return Ok(String::new());
        }
        let (nonce, salt, iterations) = parameters(&server_first)?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("its nonce does not continue ours".to_owned());
        }
        let keys = Keys::derive(self.mechanism, self.password, &salt, iterations)?;
        let end = format!("c={},r={nonce}", STANDARD.encode("n,,"));
        let signed = format!("{},{server_first},{end}", self.first_bare());
        self.proof = Some(format!("v={}", STANDARD.encode(keys.server_signature(&signed))));
        Ok(STANDARD.encode(format!("{end},p={}", STANDARD.encode(keys.client_proof(&signed)))))
    }

    /// Checks that the server knows the password too, by what it says at the end.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn check(&mut self, last: &str) -> Result<(), String> {
        if self.mechanism == Mechanism::Plain {
            return Ok(());
        }
        match &self.proof {
            // Said before, as a challenge.
            Some(proof) if proof.is_empty() => Ok(()),
            Some(proof) if !last.is_empty() && *proof == decoded(last)? => {
                self.proof = Some(String::new());
                Ok(())
            }
            _ => Err("it did not prove that it knows the password".to_owned()),
        }
    }
}

fn decoded(text: &str) -> Result<String, String> {
    let wrong = || "its message is no text".to_owned();
    let bytes = STANDARD.decode(text.trim()).map_err(|_| wrong())?;
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn parameters(server_first: &str) -> Result<(String, Vec<u8>, NonZeroU32), String> {
    let value = |name: &str| {
        let found = server_first.split(',').find_map(|part| part.strip_prefix(name));
        found.ok_or_else(|| format!("its message has no `{name}`"))
    };
    let salt = STANDARD.decode(value("s=")?).map_err(|_| "its salt is no base64".to_owned())?;
    let iterations = value("i=")?.parse().ok().filter(|count| ITERATIONS.contains(count));
    let iterations = iterations.and_then(NonZeroU32::new);
    let iterations =
        iterations.ok_or_else(|| "its number of iterations is not usual".to_owned())?;
    Ok((value("r=")?.to_owned(), salt, iterations))
}

struct Keys {
    hmac: hmac::Algorithm,
    digest: &'static digest::Algorithm,
    salted: Vec<u8>,
}

impl Keys {
    fn derive(
        mechanism: Mechanism,
        password: &SecretString,
        salt: &[u8],
        iterations: NonZeroU32,
    ) -> Result<Self, String> {
        let (hmac, digest, derivation) = match mechanism {
            Mechanism::ScramSha256 => {
                (hmac::HMAC_SHA256, &digest::SHA256, pbkdf2::PBKDF2_HMAC_SHA256)
            }
            Mechanism::ScramSha1 => (
                hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
                &digest::SHA1_FOR_LEGACY_USE_ONLY,
                pbkdf2::PBKDF2_HMAC_SHA1,
            ),
            Mechanism::Plain => return Err("it asks for more than the password".to_owned()),
        };
        let mut salted = vec![0; digest.output_len()];
        let password = password.expose_secret().as_bytes();
        pbkdf2::derive(derivation, iterations, salt, password, &mut salted);
        Ok(Self { hmac, digest, salted })
    }

    fn sign(&self, key: &[u8], text: &[u8]) -> Vec<u8> {
        hmac::sign(&hmac::Key::new(self.hmac, key), text).as_ref().to_vec()
    }

    fn client_proof(&self, signed: &str) -> Vec<u8> {
        let key = self.sign(&self.salted, b"Client Key");
        let stored = digest::digest(self.digest, &key);
        let signature = self.sign(stored.as_ref(), signed.as_bytes());
        key.iter().zip(signature).map(|(one, other)| one ^ other).collect()
    }

    fn server_signature(&self, signed: &str) -> Vec<u8> {
        let key = self.sign(&self.salted, b"Server Key");
        self.sign(&key, signed.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 5802 and RFC 7677.
    #[test]
    fn logins_are_those_of_the_standards() {
        let password = SecretString::from("pencil");
        for (mechanism, nonce, server_first, answer, last) in [
            (
                Mechanism::ScramSha1,
                "fyko+d2lbbFgONRv9qkxdawL",
                "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
                "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
                "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
            ),
            (
                Mechanism::ScramSha256,
                "rOprNGfwEbeRWgbNEkqO",
                "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
                "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                 p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
                "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
            ),
        ] {
            let mut login = Login::new(mechanism, "user", &password, nonce.to_owned());
            assert_eq!(
                STANDARD.decode(login.first()).unwrap(),
                format!("n,,n=user,r={nonce}").as_bytes()
            );
            let said = login.answer(&STANDARD.encode(server_first)).unwrap();
            assert_eq!(String::from_utf8(STANDARD.decode(said).unwrap()).unwrap(), answer);
            assert!(login.check("").is_err());
            assert!(login.check(&STANDARD.encode("v=AAAA")).is_err());
            login.check(&STANDARD.encode(last)).unwrap();
        }
    }

    #[test]
    fn a_server_that_asks_for_nonsense_gets_no_answer() {
        let password = SecretString::from("pencil");
        for server_first in [
            "r=other,s=QSXCR+Q6sek8bf92,i=4096",
            "r=abc,s=QSXCR+Q6sek8bf92,i=4096",
            "r=abcd,s=QSXCR+Q6sek8bf92,i=1",
            "r=abcd,s=QSXCR+Q6sek8bf92,i=4000000000",
            "r=abcd,s=!,i=4096",
            "",
        ] {
            let mut login = Login::new(Mechanism::ScramSha1, "user", &password, "abc".to_owned());
            assert!(login.answer(&STANDARD.encode(server_first)).is_err(), "{server_first}");
        }
    }

    #[test]
    fn the_password_itself_is_sent_only_where_nobody_reads_it() {
        let offered = ["PLAIN", "SCRAM-SHA-1", "X"];
        assert_eq!(Mechanism::choose(&offered, true), Some(Mechanism::ScramSha1));
        assert_eq!(Mechanism::choose(&["PLAIN"], true), Some(Mechanism::Plain));
        assert_eq!(Mechanism::choose(&["PLAIN"], false), None);
    }
}
