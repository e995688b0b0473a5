//! A package in a repository of git, read by the installed program.
//!
//! Objects are read as they are stored. No working directory is made, so no hook, filter or attribute of the repository or of
//! this machine takes part.

use std::ffi::OsString;

use myclaw_files::OwnedDirectory;
use myclaw_packages::{Tree, TreeEntry};

use crate::blocking::blocking;
use crate::git::Git;
use crate::{AgentError, FailureClass};

/// What keeps other programs, and the configs of this machine, out of it.
const VARIABLES: [(&str, &str); 6] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ALLOW_PROTOCOL", "https:http:ssh:git:file"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_LFS_SKIP_SMUDGE", "1"),
];

fn failed(why: String) -> AgentError {
    AgentError::new(FailureClass::Packages, why)
}

/// Reads the files of a commit, and says which one it was.
///
/// # Errors
/// There is no git, the repository cannot be reached, or it is no package.
pub(super) async fn fetch(
    url: &str,
    reference: Option<&str>,
) -> Result<(Tree, String), AgentError> {
    let reference = reference.unwrap_or("HEAD");
    let is_reference = |char: char| char.is_ascii_alphanumeric() || "-_./@+".contains(char);
    if url.starts_with('-') || reference.starts_with('-') || !reference.chars().all(is_reference) {
        return Err(AgentError::usage(format!(
            "`{url}#{reference}` is no repository; write URL, or URL#BRANCH with the name of a branch, a tag or a commit"
        )));
    }
    let directory = blocking(|| OwnedDirectory::create(&std::env::temp_dir(), "myclaw-package-"));
    let directory =
        directory.await?.map_err(|error| failed(format!("cannot make a directory: {error}")))?;
    let at = directory.path();
    command(at, &["init", "--quiet", "--bare", "--template=", "repository"], Vec::new()).await?;
    let fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--", url, reference];
    command(at, &fetch, Vec::new()).await?;
    let commit = command(at, &["rev-parse", "--verify", "FETCH_HEAD^{commit}"], Vec::new()).await?;
    let commit = String::from_utf8_lossy(&commit).trim().to_owned();
    let listed = command(at, &["ls-tree", "-r", "-z", "--full-tree", &commit], Vec::new()).await?;
    let mut tree = Tree::default();
    let mut files: Vec<(String, bool)> = Vec::new();
    let mut wanted = String::new();
    for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let line = std::str::from_utf8(line)
            .map_err(|_| failed(format!("{url} holds a file with a name that is not UTF-8")))?;
        let (facts, path) = line.split_once('\t').unwrap_or((line, ""));
        let facts: Vec<&str> = facts.split(' ').collect();
        match facts[..] {
            ["100644" | "100755" | "100664", "blob", object] => {
                files.push((path.to_owned(), facts[0] == "100755"));
                wanted.push_str(object);
                wanted.push('\n');
            }
            // A link, or another repository.
            _ => tree.leave_out(path),
        }
    }
    let contents = command(at, &["cat-file", "--batch"], wanted.into_bytes()).await?;
    let mut rest = contents.as_slice();
    for (path, is_executable) in files {
        let bytes = object(&mut rest)
            .ok_or_else(|| failed(format!("git does not give the file {path} of {url}")))?;
        tree.add(&path, TreeEntry { bytes, is_executable })?;
    }
    Ok((tree, commit))
}

/// The next object of `git cat-file --batch`: `ID blob SIZE`, a line end, the bytes, a line end.
fn object(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let head = std::str::from_utf8(&rest[..end]).ok()?;
    let size: usize = head.rsplit(' ').next()?.parse().ok()?;
    let bytes = rest.get(end + 1..end + 1 + size)?.to_vec();
    *rest = rest.get(end + 2 + size..)?;
    Some(bytes)
}

async fn command(
    directory: &std::path::Path,
    args: &[&str],
    input: Vec<u8>,
) -> Result<Vec<u8>, AgentError> {
    let mut variables: Vec<(&'static str, OsString)> =
        VARIABLES.iter().map(|(name, value)| (*name, value.into())).collect();
    if args.first() != Some(&"init") {
        variables.push(("GIT_DIR", directory.join("repository").into()));
    }
    let git = Git { variables, input, reaches_network: true, ..Git::default() };
    let ended = git
        .run(directory, args)
        .await
        .map_err(|why| failed(format!("{why}; a package can be a directory or an archive too")))?;
    match ended.is_success {
        true => Ok(ended.printed),
        false => {
            let what = args.first().copied().unwrap_or_default();
            Err(failed(format!("git {what} failed: {}", ended.errors)))
        }
    }
}
