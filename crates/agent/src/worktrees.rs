//! Worktrees of git in which sessions work: made next to the repository, each with a branch of its own.
//!
//! git keeps the list of them, so what a killed program leaves is in it. Nothing that a session has made is removed before it
//! is a commit on the branch. The config of a repository may be the work of others: none of the programs that it names is
//! started here, neither hooks nor filters nor merge drivers. Those of the user's own config are.

use std::path::{Path, PathBuf};

mod listed;
mod names;

use crate::git::{Ended, Git};
use crate::{AgentError, FailureClass};
use listed::{Entry, Head, disabled, gitlinks};
use myclaw_files::canonical_or_same;
use names::{checked, made_up, own_branch};

/// How the branches of worktrees begin.
const BRANCHES: &str = "myclaw/";
/// How git's names of branches begin.
const HEADS: &str = "refs/heads/";
/// What the directory of the worktrees is called, behind the name of the repository.
const SUFFIX: &str = ".worktrees";
/// Most paths that a message names.
const MOST_NAMED: usize = 5;
/// The commit of what was not committed.
const MESSAGE: &str = "Keep what was not committed in the worktree";

/// A worktree that a session can work in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its name.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
    /// The branch that is checked out in it, or the commit if no branch is.
    pub branch: String,
    /// What stands in the way of using it, if anything does.
    pub obstacle: Option<String>,
    /// Files with changes that are not committed.
    pub changed: usize,
    /// Commits that the checked-out branch of the repository does not have.
    pub ahead: usize,
}

/// A worktree that was made or found, and what its user should know.
#[derive(Debug)]
pub struct Prepared {
    /// The worktree.
    pub worktree: Worktree,
    /// The directory in it that stands for the one in which its user was.
    pub directory: PathBuf,
    /// Whether it was made now.
    pub is_new: bool,
    /// Sentences.
    pub notes: Vec<String>,
}

/// Whether a worktree goes in which nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoveUnused {
    /// It goes.
    Yes,
    /// It stays.
    No,
}

/// A repository with the directory of it in which somebody works.
#[derive(Debug)]
pub struct Repository {
    /// The directory below the top.
    below: PathBuf,
    /// The top directory of the working tree.
    top: PathBuf,
    /// Where its worktrees are.
    place: PathBuf,
    /// Settings that turn the programs of its config off.
    settings: Vec<(String, String)>,
}

fn failed(why: impl Into<String>) -> AgentError {
    AgentError::new(FailureClass::Workspace, why)
}

impl Repository {
    /// The repository of a directory.
    ///
    /// # Errors
    /// There is none, it has no files, or git does not start.
    pub async fn of(directory: &Path) -> Result<Self, AgentError> {
        let shown = directory.display();
        let ask = |args: &'static [&'static str]| Git::default().run(directory, args);
        let top = ask(&["rev-parse", "--path-format=absolute", "--show-toplevel"]).await;
        let top = top.map_err(failed)?;
        if !top.is_success {
            return Err(failed(match top.errors.contains("must be run in a work tree") {
                true => format!("{shown} is a repository without files; go to a clone of it"),
                false => format!(
                    "{shown} is in no git repository that can be used, and a worktree needs one: {}",
                    top.errors
                ),
            }));
        }
        let common = ask(&["rev-parse", "--path-format=absolute", "--git-common-dir"]).await;
        let common = PathBuf::from(common.map_err(failed)?.text());
        // A worktree of a worktree stands next to it.
        let main = match common.file_name().is_some_and(|name| name == ".git") {
            true => common.parent().unwrap_or(&common).to_owned(),
            false => common.clone(),
        };
        let name = main.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = main.with_file_name(format!("{name}{SUFFIX}"));
        let top = PathBuf::from(top.text());
        let real = canonical_or_same(directory);
        let below = real.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        let settings = disabled(&top).await?;
        Ok(Self { below, top, place, settings })
    }

    /// Makes a worktree of this name with what is committed now, or takes up the one that there is.
    ///
    /// # Errors
    /// The name cannot be used, there is no commit, or git refuses.
    pub async fn prepare(&self, name: Option<&str>) -> Result<Prepared, AgentError> {
        let name = match name {
            Some(name) => checked(name)?.to_owned(),
            None => made_up(),
        };
        let mut notes = self.notes().await?;
        if let Some(known) = self.entries().await?.into_iter().find(|entry| entry.name == name) {
            if known.is_unfinished {
                // A program was killed while git made it, so nobody has worked in it.
                let path = text_of(&known.path)?;
                self.done(&self.top, &["worktree", "remove", "--force", "--force", path]).await?;
            } else if known.path.is_dir() {
                let worktree = self.described(known).await?;
                let directory = self.directory_in(&worktree.path);
                return Ok(Prepared { worktree, directory, is_new: false, notes: Vec::new() });
            } else {
                // The directory is gone, the branch is not.
                self.done(&self.top, &["worktree", "prune"]).await?;
            }
        }
        let head =
            self.git(&self.top, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?;
        if !head.is_success {
            let top = self.top.display();
            return Err(failed(format!(
                "the repository {top} has no commit yet, so a worktree would be empty; commit something first"
            )));
        }
        let (path, branch) = (self.place.join(&name), own_branch(&name));
        if path.exists() {
            return Err(failed(format!(
                "{} exists and is no worktree of this repository; choose another name, or remove it",
                path.display()
            )));
        }
        let there = text_of(&path)?;
        let reference = format!("{HEADS}{branch}");
        let has_branch =
            self.git(&self.top, &["show-ref", "--verify", "--quiet", &reference]).await?.is_success;
        match has_branch {
            true => {
                notes.push(format!("it continues the branch {branch}"));
                self.done(&self.top, &["worktree", "add", "--quiet", there, &branch]).await?;
            }
            false => {
                let add =
                    ["worktree", "add", "--quiet", "--no-track", "-b", &branch, there, "HEAD"];
                self.done(&self.top, &add).await?;
            }
        }
        let directory = self.directory_in(&path);
        let worktree = Worktree { name, path, branch, obstacle: None, changed: 0, ahead: 0 };
        Ok(Prepared { worktree, directory, is_new: true, notes })
    }

    /// What a command of git that changes nothing prints in the directory in which somebody works.
    ///
    /// # Errors
    /// git refuses, or prints too much.
    pub async fn read(&self, args: &[&str]) -> Result<String, AgentError> {
        Ok(self.done(&self.top.join(&self.below), args).await?.text())
    }

    fn directory_in(&self, worktree: &Path) -> PathBuf {
        let below = worktree.join(&self.below);
        if below.is_dir() { below } else { worktree.to_owned() }
    }

    /// Removes a worktree in which nothing was done; returns what to tell the user about it.
    ///
    /// # Errors
    /// git refuses. Nothing is removed then.
    pub async fn finish(&self, name: &str, removes: RemoveUnused) -> Result<String, AgentError> {
        let worktree = self.find(name).await?;
        let is_unused = worktree.changed == 0
            && worktree.ahead == 0
            && worktree.branch == own_branch(&worktree.name)
            && self.inner(&worktree.path).await?.is_empty();
        if is_unused && removes == RemoveUnused::Yes {
            self.remove(&worktree, &mut Vec::new()).await?;
            return Ok(format!("nothing was changed in the worktree {name}, which is removed"));
        }
        let count = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        if let Some(obstacle) = &worktree.obstacle {
            return Ok(format!(
                "the worktree {name} in {} stays: {obstacle}, and it has {} without a commit and {} of its own",
                worktree.path.display(),
                count(worktree.changed, "changed file"),
                count(worktree.ahead, "commit")
            ));
        }
        Ok(format!(
            "the worktree {name} has {} without a commit, and {} of its own on the branch {}: `myclaw worktrees merge \
             {name}` takes them over, `myclaw worktrees drop {name}` removes it",
            count(worktree.changed, "changed file"),
            count(worktree.ahead, "commit"),
            worktree.branch
        ))
    }

    /// What a new worktree does not have.
    async fn notes(&self) -> Result<Vec<String>, AgentError> {
        let mut notes = Vec::new();
        if !self.changes(&self.top).await?.is_empty() {
            notes.push(format!("what is not committed in {} is not in it", self.top.display()));
        }
        let modules = self.git(&self.top, &["ls-files", "--stage", "-z"]).await?;
        if gitlinks(&modules.printed).next().is_some() {
            notes.push(
                "the directories of submodules are empty in it; `git submodule update --init` fills them".to_owned(),
            );
        }
        Ok(notes)
    }

    /// The worktrees of the repository that sessions can work in, by their names.
    ///
    /// # Errors
    /// git does not start, or refuses.
    pub async fn list(&self) -> Result<Vec<Worktree>, AgentError> {
        let mut found = Vec::new();
        for entry in self.entries().await? {
            found.push(self.described(entry).await?);
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// Commits what is not committed in a worktree, merges its branch into what is checked out here, and removes both.
    /// Returns what to tell the user.
    ///
    /// # Errors
    /// There is no such worktree, or the merge conflicts. Nothing is merged or removed then.
    pub async fn merge(&self, name: &str) -> Result<Vec<String>, AgentError> {
        let worktree = self.find(name).await?;
        let mut told = Vec::new();
        self.keep(&worktree, &mut told).await?;
        let what = format!("Merge the worktree {name}");
        let merge = ["merge", "--no-ff", "--no-stat", "--no-edit", "-m", &what, &worktree.branch];
        let settings = self.settings_of_author(&self.top).await?;
        let merged = Git { settings, ..Git::default() }.run(&self.top, &merge).await;
        let merged = merged.map_err(failed)?;
        if !merged.is_success {
            let conflicts = self
                .git(&self.top, &["diff", "--name-only", "--no-ext-diff", "--diff-filter=U"])
                .await?
                .text();
            let begun =
                self.git(&self.top, &["rev-parse", "--verify", "--quiet", "MERGE_HEAD"]).await?;
            if begun.is_success {
                self.done(&self.top, &["merge", "--abort"]).await?;
            }
            let files: Vec<&str> = conflicts.lines().take(MOST_NAMED).collect();
            return Err(failed(match files.is_empty() {
                true => format!(
                    "{} cannot be merged, and nothing has changed here: {}",
                    worktree.branch,
                    said(&merged)
                ),
                false => format!(
                    "{} conflicts in {}, and nothing has changed here; merge it by hand: git merge {}",
                    worktree.branch,
                    files.join(", "),
                    worktree.branch
                ),
            }));
        }
        told.push(format!("merged {} into {}", worktree.branch, self.top.display()));
        self.remove(&worktree, &mut told).await?;
        Ok(told)
    }

    /// Removes a worktree. What it has that is nowhere else stays on its branch. Returns what to tell the user.
    ///
    /// # Errors
    /// There is no such worktree, or it has a repository of its own inside. Nothing is removed then.
    pub async fn drop_worktree(&self, name: &str) -> Result<Vec<String>, AgentError> {
        let worktree = self.find(name).await?;
        let mut told = Vec::new();
        self.keep(&worktree, &mut told).await?;
        self.remove(&worktree, &mut told).await?;
        Ok(told)
    }

    /// Commits what is not committed.
    async fn keep(&self, worktree: &Worktree, told: &mut Vec<String>) -> Result<(), AgentError> {
        let path = &worktree.path;
        if !path.is_dir() {
            return Ok(());
        }
        if self.git(path, &["symbolic-ref", "--quiet", "HEAD"]).await?.text().is_empty() {
            return Err(failed(format!(
                "the worktree {0} has a commit checked out and no branch, so what is committed there would be lost; give it one, \
                 such as with `git -C {0} switch -c BRANCH`, and repeat the command",
                path.display()
            )));
        }
        self.done(path, &["add", "--all"]).await?;
        let inner = self.inner(path).await?;
        if !inner.is_empty() {
            return Err(failed(format!(
                "the worktree {} has directories of other repositories inside ({}), whose contents would be lost; push or move \
                 what you need, remove these directories, and repeat the command",
                path.display(),
                inner.join(", ")
            )));
        }
        if self.git(path, &["diff", "--cached", "--quiet", "--no-ext-diff"]).await?.is_success {
            return Ok(());
        }
        let settings = self.settings_of_author(path).await?;
        let git = Git { settings, ..Git::default() };
        let commit = git.run(path, &["commit", "--quiet", "--no-verify", "-m", MESSAGE]).await;
        let commit = commit.map_err(failed)?;
        if !commit.is_success {
            return Err(failed(format!(
                "git commit failed in {}: {}",
                path.display(),
                said(&commit)
            )));
        }
        told.push(format!("what was not committed is a commit of {} now", worktree.branch));
        Ok(())
    }

    /// The directories of submodules and of other repositories in which something is: git keeps nothing of that here.
    async fn inner(&self, path: &Path) -> Result<Vec<String>, AgentError> {
        let staged = self.git(path, &["ls-files", "--stage", "-z"]).await?;
        let has_files = |inner: &String| {
            let read = std::fs::read_dir(path.join(inner));
            read.is_ok_and(|mut files| files.next().is_some())
        };
        Ok(gitlinks(&staged.printed).filter(has_files).take(MOST_NAMED).collect())
    }

    async fn remove(&self, worktree: &Worktree, told: &mut Vec<String>) -> Result<(), AgentError> {
        if worktree.path.is_dir() {
            let path = text_of(&worktree.path)?;
            self.done(&self.top, &["worktree", "remove", "--force", path]).await?;
        } else {
            self.done(&self.top, &["worktree", "prune"]).await?;
        }
        // Only if nothing is left in it.
        let _ = std::fs::remove_dir(&self.place);
        let ahead = self.ahead(&worktree.branch).await?;
        if ahead > 0 {
            let commits = if ahead == 1 { "commit" } else { "commits" };
            told.push(format!(
                "removed {}; the branch {} stays, with {ahead} {commits} more than this one",
                worktree.path.display(),
                worktree.branch
            ));
            return Ok(());
        }
        let path = worktree.path.display();
        let on_branch = self.git(&self.top, &["symbolic-ref", "--quiet", "HEAD"]).await?.is_success;
        let tips = self.git(&self.top, &["rev-parse", "HEAD", &worktree.branch]).await?.text();
        let has_own = tips.split_once('\n').is_none_or(|(here, there)| here != there);
        if !on_branch && has_own {
            told.push(format!(
                "removed {path}; the branch {} stays, because no branch is checked out here",
                worktree.branch
            ));
            return Ok(());
        }
        // Another one may be older than the worktree, and its own may have commits that it has not.
        let own = own_branch(&worktree.name);
        if worktree.branch != own {
            told.push(format!("removed {path}; the branch {} stays", worktree.branch));
        }
        let reference = format!("{HEADS}{own}");
        let is_there =
            self.git(&self.top, &["show-ref", "--verify", "--quiet", &reference]).await?.is_success;
        if is_there && self.ahead(&own).await? == 0 {
            self.done(&self.top, &["branch", "--quiet", "-D", &own]).await?;
        }
        if worktree.branch == own {
            told.push(format!("removed {path} and its branch"));
        }
        Ok(())
    }

    async fn find(&self, name: &str) -> Result<Worktree, AgentError> {
        let all = self.list().await?;
        let names: Vec<&str> = all.iter().map(|worktree| worktree.name.as_str()).collect();
        let hint = crate::did_you_mean(name, names);
        all.iter().find(|worktree| worktree.name == name).cloned().ok_or_else(|| {
            AgentError::usage(format!(
                "there is no worktree `{name}` here{hint} `myclaw worktrees list` lists them"
            ))
        })
    }

    async fn described(&self, entry: Entry) -> Result<Worktree, AgentError> {
        let is_there = entry.path.is_dir() && !entry.is_unfinished;
        let obstacle = match &entry.head {
            _ if entry.is_unfinished => Some("a program was killed while it was made".to_owned()),
            _ if !is_there => Some("its directory is gone".to_owned()),
            Head::Branch(_) => None,
            Head::Commit(_) => Some("no branch is checked out in it".to_owned()),
        };
        let changed = if is_there { self.changes(&entry.path).await?.len() } else { 0 };
        let (Head::Branch(branch) | Head::Commit(branch)) = entry.head;
        let ahead = self.ahead(&branch).await?;
        Ok(Worktree { name: entry.name, path: entry.path, branch, obstacle, changed, ahead })
    }

    /// The files of a working tree with changes that are not committed.
    async fn changes(&self, path: &Path) -> Result<Vec<String>, AgentError> {
        let status = self.done(path, &["status", "--porcelain", "-z", "--no-renames"]).await?;
        let rows = status.printed.split(|byte| *byte == 0).filter(|row| !row.is_empty());
        Ok(rows.map(|row| String::from_utf8_lossy(row).into_owned()).collect())
    }

    async fn ahead(&self, branch: &str) -> Result<usize, AgentError> {
        let range = format!("HEAD..{branch}");
        let counted = self.git(&self.top, &["rev-list", "--count", &range, "--"]).await?;
        Ok(counted.text().parse().unwrap_or(0))
    }

    /// The worktrees with branches of ours, as git lists them.
    async fn entries(&self) -> Result<Vec<Entry>, AgentError> {
        let listed = self.done(&self.top, &["worktree", "list", "--porcelain", "-z"]).await?;
        let text = String::from_utf8_lossy(&listed.printed).into_owned();
        Ok(text.split("\0\0").filter_map(|record| Entry::parse(record, &self.place)).collect())
    }

    /// The settings of a command that makes a commit, with an author if the user has none.
    async fn settings_of_author(&self, path: &Path) -> Result<Vec<(String, String)>, AgentError> {
        let mut settings = self.settings.clone();
        if !self.git(path, &["var", "GIT_COMMITTER_IDENT"]).await?.is_success {
            let own = [("user.name", "MyClaw"), ("user.email", "myclaw@localhost")];
            settings.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        Ok(settings)
    }

    async fn git(&self, directory: &Path, args: &[&str]) -> Result<Ended, AgentError> {
        let git = Git { settings: self.settings.clone(), ..Git::default() };
        git.run(directory, args).await.map_err(failed)
    }

    /// The same for a command that must succeed.
    async fn done(&self, directory: &Path, args: &[&str]) -> Result<Ended, AgentError> {
        let ended = self.git(directory, args).await?;
        match ended.is_success {
            true => Ok(ended),
            false => {
                let what = args.iter().take_while(|arg| !arg.starts_with('-')).copied();
                let what = what.collect::<Vec<_>>().join(" ");
                Err(failed(format!("git {what} failed: {}", said(&ended))))
            }
        }
    }
}

/// What git said about a failure, in one line.
fn said(ended: &Ended) -> String {
    let text = if ended.errors.is_empty() { ended.text() } else { ended.errors.clone() };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn text_of(path: &Path) -> Result<&str, AgentError> {
    path.to_str()
        .ok_or_else(|| failed(format!("{} is not UTF-8; use another place", path.display())))
}
