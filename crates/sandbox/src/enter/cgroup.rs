//! A cgroup that bounds the number of processes. The kernel does not apply `RLIMIT_NPROC` to root.

use std::fs;
use std::path::{Path, PathBuf};

use super::Failure;
use crate::probe::CGROUP_ROOTS;

/// Made for one command.
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// A cgroup with room for `most` processes and threads.
    pub(crate) fn create(most: u64) -> Result<Self, Failure> {
        let mut reason = "no controller of processes is mounted".to_owned();
        for root in
            CGROUP_ROOTS.iter().map(Path::new).filter(|root| root.join("cgroup.procs").exists())
        {
            let directory = root.join(format!("myclaw-{}", std::process::id()));
            // One of this name was left by a killed process that had the same id.
            drop(fs::remove_dir(&directory));
            let made = fs::create_dir(&directory)
                .and_then(|()| fs::write(directory.join("pids.max"), most.to_string()));
            match made {
                Ok(()) => return Ok(Self(directory)),
                Err(error) => {
                    drop(fs::remove_dir(&directory));
                    reason = format!("{}: {error}", directory.display());
                }
            }
        }
        Err(format!(
            "the number of processes cannot be limited for root ({reason}); run MyClaw as another user, or set no limit \
             on processes"
        ))
    }

    /// This process and all that it starts count from now on.
    pub(crate) fn join(&self) -> Result<(), Failure> {
        fs::write(self.0.join("cgroup.procs"), "0")
            .map_err(|error| format!("cannot enter the cgroup {}: {error}", self.0.display()))
    }

    /// Removes it once it is empty.
    pub(crate) fn remove(&self) {
        // A leftover is empty and does no harm.
        drop(fs::remove_dir(&self.0));
    }
}
