//! Who people are: Signal knows them by a phone number, which they can hide, and by a UUID, and says now the one, now the
//! other, now both. Here a person has the id under which they wrote first.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::envelope::{Envelope, Own};
use super::{SIGNAL, Signal};
use crate::{Intake, Sender};

/// What is known of a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Person {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other: Option<String>,
}

impl Person {
    fn has(&self, id: &str) -> bool {
        self.id == id || self.other.as_deref() == Some(id)
    }
}

/// The other id of people whom signal-cli knows as contacts.
pub(super) type Contacts = HashMap<String, String>;

impl Signal {
    /// Asks signal-cli for the contacts that have both ids. Without an answer, what people write has to tell.
    pub(super) async fn read_contacts(&self) {
        let params = Map::from_iter([("allRecipients".to_owned(), Value::Bool(true))]);
        let found = match self.api.call("listContacts", params).await {
            Ok(found) => found,
            Err(error) => return tracing::debug!(channel = SIGNAL, %error, "no contacts are read"),
        };
        let mut contacts = Contacts::new();
        for contact in found.as_array().into_iter().flatten() {
            let text =
                |key: &str| contact.get(key).and_then(Value::as_str).filter(|id| !id.is_empty());
            if let (Some(number), Some(uuid)) = (text("number"), text("uuid")) {
                contacts.insert(number.to_owned(), uuid.to_owned());
                contacts.insert(uuid.to_owned(), number.to_owned());
            }
        }
        *self.contacts() = contacts;
    }

    /// The ids of this account.
    pub(super) fn own(&self) -> Own {
        let id = self.options.number.clone();
        let other = self.contacts().get(&id).cloned();
        Own { id, other }
    }

    /// The sender of an envelope.
    ///
    /// # Errors
    /// What is known of people cannot be read or kept; it has to be tried again.
    pub(super) async fn person(
        &self,
        envelope: &Envelope,
        intake: &dyn Intake,
    ) -> Result<Sender, String> {
        let given = |id: &Option<String>| id.clone().filter(|id| !id.is_empty());
        let (mut number, mut uuid) = (given(&envelope.source_number), given(&envelope.source_uuid));
        match (&number, &uuid) {
            (Some(known), None) => uuid = self.contacts().get(known).cloned(),
            (None, Some(known)) => number = self.contacts().get(known).cloned(),
            _ => {}
        }
        let of_number = self.recall_person(number.as_deref(), intake).await?;
        let of_uuid = self.recall_person(uuid.as_deref(), intake).await?;
        // A number can come to somebody else. The UUID stays with the person.
        if let (Some(person), Some(uuid)) = (&of_number, &uuid)
            && person.other.is_some()
            && !person.has(uuid)
        {
            let mut before = [Some(&person.id), person.other.as_ref()].into_iter().flatten();
            let before = before.find(|id| Some(*id) != number.as_ref()).cloned();
            if let Some(id) = before {
                self.keep_person(&Person { id, other: None }, intake).await?;
            }
            let person = Person { id: uuid.clone(), other: number.clone() };
            self.keep_person(&person, intake).await?;
            return Ok(Sender { id: person.id, other_id: person.other, ..Sender::default() });
        }
        let known = of_number.or(of_uuid);
        let Some(id) =
            known.as_ref().map(|person| person.id.clone()).or(number.clone()).or(uuid.clone())
        else {
            return Ok(Sender::default());
        };
        let known_other = known.as_ref().and_then(|person| person.other.clone());
        let other = [number, uuid].into_iter().flatten().find(|other| *other != id).or(known_other);
        let person = Person { id, other };
        if known.as_ref() != Some(&person) {
            self.keep_person(&person, intake).await?;
        }
        Ok(Sender { id: person.id, other_id: person.other, ..Sender::default() })
    }

    fn person_key(&self, id: &str) -> String {
        format!("{SIGNAL} {} person {id}", self.options.number)
    }

    async fn recall_person(
        &self,
        id: Option<&str>,
        intake: &dyn Intake,
    ) -> Result<Option<Person>, String> {
        let Some(id) = id else { return Ok(None) };
        let known = self.people().get(id).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let kept =
            intake.recall(&self.person_key(id)).await.map_err(|refusal| refusal.to_string())?;
        let person: Option<Person> = kept.and_then(|text| serde_json::from_str(&text).ok());
        if let Some(person) = &person {
            self.people().put(id, person.clone());
        }
        Ok(person)
    }

    async fn keep_person(&self, person: &Person, intake: &dyn Intake) -> Result<(), String> {
        let text = serde_json::to_string(person).unwrap_or_default();
        for id in [Some(&person.id), person.other.as_ref()].into_iter().flatten() {
            let kept = intake.remember(&self.person_key(id), &text).await;
            kept.map_err(|refusal| refusal.to_string())?;
            self.people().put(id, person.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::future::BoxFuture;
    use serde_json::json;

    use super::*;
    use crate::signal::{SIGNAL_BASE_URL, SignalOptions};
    use crate::{AfterInterruption, Arrival, Receipt, Refusal};

    /// Keeps what it is asked to keep.
    #[derive(Default)]
    struct Kept(Mutex<HashMap<String, String>>);

    impl Intake for Kept {
        fn take(&self, _: Arrival) -> BoxFuture<'_, Result<Receipt, Refusal>> {
            unreachable!("nothing is taken")
        }

        fn wants_files<'a>(&'a self, _: &'a Arrival) -> BoxFuture<'a, Result<bool, Refusal>> {
            unreachable!("nothing is asked")
        }

        fn refuse(&self, _: Arrival, _: String) -> BoxFuture<'_, Result<Receipt, Refusal>> {
            unreachable!("nothing is refused")
        }

        fn recall<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, Refusal>> {
            Box::pin(async move { Ok(self.0.lock().expect("no panic").get(key).cloned()) })
        }

        fn remember<'a>(
            &'a self,
            key: &'a str,
            text: &'a str,
        ) -> BoxFuture<'a, Result<(), Refusal>> {
            Box::pin(async move {
                self.0.lock().expect("no panic").insert(key.to_owned(), text.to_owned());
                Ok(())
            })
        }

        fn undelivered<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<(), Refusal>> {
            unreachable!("nothing was sent")
        }
    }

    fn account() -> Signal {
        Signal::new(SignalOptions {
            account: "default".to_owned(),
            number: "+9".to_owned(),
            base_url: SIGNAL_BASE_URL.to_owned(),
            after_interruption: AfterInterruption::Report,
            most_file_bytes: 1,
        })
        .expect("an account")
    }

    /// The ids of the sender of an envelope with these ids.
    async fn ids(
        account: &Signal,
        kept: &Kept,
        number: &str,
        uuid: &str,
    ) -> (String, Option<String>) {
        let envelope = json!({"sourceNumber": number, "sourceUuid": uuid});
        let envelope = serde_json::from_value(envelope).expect("an envelope");
        let sender = account.person(&envelope, kept).await.expect("a person");
        (sender.id, sender.other_id)
    }

    fn person(id: &str, other: &str) -> (String, Option<String>) {
        (id.to_owned(), Some(other.to_owned()).filter(|other| !other.is_empty()))
    }

    #[tokio::test]
    async fn a_person_keeps_the_id_that_was_seen_first() {
        let kept = Kept::default();
        let account_before = account();
        // Whoever hid the number first, and whoever showed it.
        assert_eq!(ids(&account_before, &kept, "", "a").await, person("a", ""));
        assert_eq!(ids(&account_before, &kept, "+1", "a").await, person("a", "+1"));
        assert_eq!(ids(&account_before, &kept, "+2", "b").await, person("+2", "b"));
        // Also after a restart.
        let account = account();
        for (number, uuid) in [("+1", ""), ("", "a"), ("+1", "a")] {
            assert_eq!(
                ids(&account, &kept, number, uuid).await,
                person("a", "+1"),
                "{number} {uuid}"
            );
        }
        assert_eq!(ids(&account, &kept, "", "b").await, person("+2", "b"));
    }

    #[tokio::test]
    async fn a_number_that_comes_to_somebody_else_is_another_person() {
        let (kept, account) = (Kept::default(), account());
        assert_eq!(ids(&account, &kept, "+1", "a").await, person("+1", "a"));
        assert_eq!(ids(&account, &kept, "+1", "b").await, person("b", "+1"));
        assert_eq!(ids(&account, &kept, "", "a").await, person("a", ""));
        assert_eq!(ids(&account, &kept, "+1", "b").await, person("b", "+1"));
        assert_eq!(ids(&account, &kept, "+1", "").await, person("b", "+1"));
    }

    #[tokio::test]
    async fn a_contact_of_the_daemon_tells_the_other_id() {
        let (kept, account) = (Kept::default(), account());
        account.contacts().extend(
            [("a", "+1"), ("+1", "a")].map(|(id, other)| (id.to_owned(), other.to_owned())),
        );
        assert_eq!(ids(&account, &kept, "", "a").await, person("+1", "a"));
        assert_eq!(ids(&account, &kept, "+1", "").await, person("+1", "a"));
    }
}
