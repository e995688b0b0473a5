//! What a command writes, judged by the places from which programs are started later.

use std::path::{Path, PathBuf};

use super::RefusalKind;
use super::place::Place;
use crate::harmless::{Form, Written, WrittenPath};

/// How a command may write a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenAs<'a> {
    /// Nothing is known of the program: the path may be a file that it reads, or one that it writes.
    Perhaps,
    /// As a file.
    File,
    /// As a copy of one of these, or as a directory for copies of them.
    Copies(&'a [PathBuf]),
    /// As a directory in which files are written whose names the line does not say.
    Unnamed,
}

/// Where a word of the line leads.
enum Target {
    Path(PathBuf),
    /// To files in this directory.
    In(PathBuf),
}

impl Place<'_> {
    /// Refuses what may put a program where one is started later.
    pub(super) fn check_written(
        &self,
        program: &str,
        written: &[Written],
    ) -> Result<(), RefusalKind> {
        let unknown = || RefusalKind::UnknownTarget(program.to_owned());
        for Written { path, form } in written {
            let is_fixed = path.text.starts_with('/') && !matches!(form, Form::Copies(_));
            let root = [PathBuf::from("/")];
            let directories = match self.directories() {
                Some(directories) => directories,
                None if is_fixed => &root,
                None => return Err(RefusalKind::UnknownDirectory(program.to_owned())),
            };
            for directory in directories {
                let target = self.target(directory, path).ok_or_else(unknown)?;
                let (path, why) = match (target, form) {
                    (Target::In(path), _) => {
                        let why = (self.request().start_place)(&path, WrittenAs::Unnamed);
                        (path, why)
                    }
                    (Target::Path(path), Form::Copies(sources)) => {
                        let sources = self.sources(directory, sources);
                        let form = sources.as_deref().map_or(WrittenAs::Unnamed, WrittenAs::Copies);
                        let why = (self.request().start_place)(&path, form);
                        (path, why)
                    }
                    (Target::Path(path), form) => {
                        let form = match form {
                            Form::Perhaps => WrittenAs::Perhaps,
                            Form::Unnamed => WrittenAs::Unnamed,
                            Form::File | Form::Copies(_) => WrittenAs::File,
                        };
                        let why = (self.request().start_place)(&path, form);
                        (path, why)
                    }
                };
                if let Some(why) = why {
                    return Err(RefusalKind::StartPlace {
                        program: program.to_owned(),
                        path: crate::escape(&path.to_string_lossy()),
                        why: crate::escape(&why),
                    });
                }
            }
        }
        Ok(())
    }

    /// `None` if only the shell knows.
    fn target(&self, directory: &Path, path: &WrittenPath) -> Option<Target> {
        let text = path.text.as_str();
        if !path.is_expanded {
            return Some(Target::Path(directory.join(text)));
        }
        let (start, text) = match text.strip_prefix('~') {
            None => (directory.to_owned(), text),
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = self.request().environment.get("HOME")?;
                (PathBuf::from(home), rest.trim_start_matches('/'))
            }
            Some(_) => return None,
        };
        if text.contains(['$', '~']) || !start.is_absolute() {
            return None;
        }
        let Some(wildcard) = text.find(['*', '?', '[']) else {
            return Some(Target::Path(start.join(text)));
        };
        let fixed = text.get(..wildcard).and_then(|fixed| fixed.rfind('/')).unwrap_or(0);
        Some(Target::In(start.join(text.get(..fixed)?)))
    }

    /// The files that are copied; `None` if their names are not known.
    fn sources(&self, directory: &Path, sources: &[WrittenPath]) -> Option<Vec<PathBuf>> {
        let source = |source: &WrittenPath| match self.target(directory, source)? {
            // `a/` and `a/.` mean what is in it.
            Target::Path(path) if !source.text.ends_with(['/', '.']) => Some(path),
            Target::Path(_) | Target::In(_) => None,
        };
        sources.iter().map(source).collect()
    }
}
