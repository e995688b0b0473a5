//! Getting a package from where it is. Nothing of it runs, and nothing is kept.

use std::path::{Path, PathBuf};

use myclaw_packages::{PackageContents, Source, Tree, plain_name};
use ring::digest::{SHA256, digest};
use url::Url;

use super::download::{check_address, download};
use super::{git, registry};
use crate::blocking::blocking;
use crate::{AgentError, SessionConfig};

/// Largest archive.
const MAX_ARCHIVE_BYTES: u64 = 32 << 20;

/// A package as the owner names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// A directory or an archive of this machine.
    Path(PathBuf),
    /// A repository, and a branch, tag or commit of it.
    Git {
        /// Its address.
        url: String,
        /// What of it.
        reference: Option<String>,
    },
    /// A package of npm, and a version of it.
    Npm {
        /// Its name.
        name: String,
        /// A version or a tag.
        wanted: Option<String>,
    },
    /// An archive.
    Archive(Url),
}

/// A package that was fetched.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Its files.
    pub tree: Tree,
    /// What is in it.
    pub contents: PackageContents,
    /// From where it came.
    pub source: Source,
    /// The name that it may have here.
    pub name: Option<String>,
}

impl Wanted {
    /// Reads how a package is named: `npm:NAME@VERSION`, the address of an archive or a repository (`URL#BRANCH`), else a
    /// path, which starts in `here`.
    ///
    /// # Errors
    /// The text is none of these. The error says what to write.
    pub fn parse(text: &str, here: &Path) -> Result<Self, AgentError> {
        if let Some(package) = text.strip_prefix("npm:") {
            // The first character may belong to a scope.
            let at = package.char_indices().skip(1).find(|(_, char)| *char == '@');
            let (name, wanted) = match at {
                Some((at, _)) => (&package[..at], Some(package[at + 1..].to_owned())),
                None => (package, None),
            };
            if !registry::is_name(name) {
                return Err(AgentError::usage(format!(
                    "`{text}` is no package of npm; write npm:NAME or npm:@SCOPE/NAME@1.2.3"
                )));
            }
            return Ok(Self::Npm { name: name.to_owned(), wanted });
        }
        let is_remote = ["https://", "http://", "ssh://", "git://", "file://", "git+"]
            .iter()
            .any(|scheme| text.starts_with(scheme));
        let is_short = text.split_once(':').is_some_and(|(host, _)| {
            host.contains('@') && !host.contains('/') && !here.join(text).exists()
        });
        if is_short {
            return Ok(Self::repository(text));
        }
        if !is_remote && text.contains("://") {
            return Err(AgentError::usage(format!(
                "`{text}` is no place of a package; give a directory or an archive, npm:NAME, or an address with https://, \
                 ssh:// or git://"
            )));
        }
        if !is_remote {
            return Ok(Self::Path(here.join(text)));
        }
        let text = text.strip_prefix("git+").unwrap_or(text);
        let url = Url::parse(text)
            .map_err(|error| AgentError::usage(format!("`{text}` is no address: {error}")))?;
        check_address(&url)?;
        let path = url.path().to_lowercase();
        let is_archive = [".tar.gz", ".tgz", ".tar", ".zip"].iter().any(|end| path.ends_with(end));
        match is_archive && url.scheme().starts_with("http") {
            true => Ok(Self::Archive(url)),
            false => Ok(Self::repository(text)),
        }
    }

    fn repository(text: &str) -> Self {
        match text.split_once('#') {
            Some((url, reference)) => {
                Self::Git { url: url.to_owned(), reference: Some(reference.to_owned()) }
            }
            None => Self::Git { url: text.to_owned(), reference: None },
        }
    }

    /// What to fetch again for an update: what was named, not what it was then.
    pub fn again(source: &Source) -> Result<Self, AgentError> {
        Ok(match source {
            Source::Path { path } => Self::Path(path.clone()),
            Source::Git { url, reference, .. } => {
                Self::Git { url: url.clone(), reference: reference.clone() }
            }
            Source::Npm { name, wanted, .. } => {
                Self::Npm { name: name.clone(), wanted: wanted.clone() }
            }
            Source::Archive { url, .. } => Self::Archive(
                Url::parse(url).map_err(|error| AgentError::usage(error.to_string()))?,
            ),
        })
    }
}

/// Gets a package, or the directory `subdirectory` of it.
///
/// # Errors
/// It cannot be reached or read, is not what its source promised, or is no package.
pub async fn fetch_package(
    session: &SessionConfig,
    wanted: &Wanted,
    subdirectory: Option<&str>,
) -> Result<Fetched, AgentError> {
    let (tree, source, name) = match wanted {
        Wanted::Path(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let read = path.clone();
            let tree = blocking(move || of_path(&read)).await??;
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
            (tree, Source::Path { path }, name.unwrap_or_default())
        }
        Wanted::Git { url, reference } => {
            let (tree, commit) = git::fetch(url, reference.as_deref()).await?;
            let end = url.trim_end_matches('/').trim_end_matches(".git");
            let name = end.rsplit(['/', ':']).next().unwrap_or_default().to_owned();
            let (url, reference) = (url.clone(), reference.clone());
            (tree, Source::Git { url, reference, commit }, name)
        }
        Wanted::Npm { name, wanted } => {
            let (tree, version, integrity) =
                registry::fetch(session, name, wanted.as_deref()).await?;
            let (named, wanted) = (name.clone(), wanted.clone());
            (tree, Source::Npm { name: named, wanted, version, integrity }, name.clone())
        }
        Wanted::Archive(url) => {
            let bytes = download(&session.home, url, MAX_ARCHIVE_BYTES).await?;
            let sha256 = myclaw_files::hex(digest(&SHA256, &bytes).as_ref());
            let tree = blocking(move || Tree::of_archive(&bytes)).await??;
            let file = url.path().rsplit('/').next().unwrap_or_default();
            let name = file.split(".tar").next().unwrap_or_default();
            let name = name.trim_end_matches(".tgz").trim_end_matches(".zip");
            (tree, Source::Archive { url: url.to_string(), sha256 }, name.to_owned())
        }
    };
    let tree = match subdirectory {
        Some(directory) => tree.below(directory),
        None => tree,
    };
    if tree.is_empty() {
        return Err(AgentError::usage(match subdirectory {
            Some(directory) => format!("{source} has no directory {directory} with files"),
            None => format!("{source} holds no files"),
        }));
    }
    let contents = PackageContents::of(&tree)
        .map_err(|error| AgentError::usage(format!("{source} is no package: {error}")))?;
    let below =
        subdirectory.and_then(|directory| directory.rsplit('/').find(|part| !part.is_empty()));
    let named = contents.name.as_deref().and_then(plain_name);
    let name = named.or_else(|| plain_name(below.unwrap_or(&name)));
    Ok(Fetched { tree, contents, source, name })
}

fn of_path(path: &Path) -> Result<Tree, AgentError> {
    let unreadable = |why: String| AgentError::usage(format!("{}: {why}", path.display()));
    let tree = match path.is_dir() {
        true => Tree::of_directory(path),
        false => {
            let read = myclaw_files::read_regular(path, MAX_ARCHIVE_BYTES + 1);
            let bytes = read.map_err(|error| unreadable(format!("cannot be read: {error}")))?;
            if bytes.len() as u64 > MAX_ARCHIVE_BYTES {
                return Err(unreadable(too_large()));
            }
            Tree::of_archive(&bytes)
        }
    };
    tree.map_err(|error| unreadable(error.0))
}

fn too_large() -> String {
    format!("the archive has more than {} MiB", MAX_ARCHIVE_BYTES >> 20)
}
