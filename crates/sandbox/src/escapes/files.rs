//! Attempts on files, environment and descriptors.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::scene::{SECRET, SECRET_VARIABLE};
use super::{Attempt, Scene, calls, missed};

/// Longest time in which a link is swapped: half of what an attempt may take.
const SWAPPING: Duration = Duration::from_secs(10);

pub(super) const ATTEMPTS: &[Attempt] = &[
    Attempt { name: "read a file outside", run: |scene| has_secret(&scene.secret_file()) },
    Attempt {
        name: "list a directory outside",
        run: |scene| fs::read_dir(&scene.outside).map(drop),
    },
    Attempt { name: "write a file outside", run: |scene| fs::write(scene.outside.join("new"), "") },
    Attempt { name: "append to a file outside", run: append },
    Attempt {
        name: "truncate a file outside",
        run: |scene| calls::truncate(&scene.outside.join("mode")),
    },
    Attempt { name: "delete a file outside", run: delete },
    Attempt { name: "make a directory outside", run: make_directory },
    Attempt { name: "move a file in from outside", run: move_in },
    Attempt { name: "read through a symbolic link", run: symbolic_link },
    Attempt { name: "read through a symbolic link that is swapped", run: swapped_link },
    Attempt { name: "read through a hard link", run: hard_link },
    Attempt {
        name: "read a file by its handle",
        run: |scene| calls::open_by_handle(&scene.secret_file()),
    },
    Attempt {
        name: "make a device",
        run: |scene| calls::make_device(&scene.workspace.join("device")),
    },
    // Opening it changes nothing.
    Attempt {
        name: "change a file of the system",
        run: |_| OpenOptions::new().append(true).open("/etc/passwd").map(drop),
    },
    Attempt { name: "read the hashes of passwords", run: |_| File::open("/etc/shadow").map(drop) },
    Attempt { name: "see the environment of the parent", run: environment },
    Attempt { name: "use an inherited descriptor", run: inherited_descriptor },
];

/// Whether the secret can be read there.
pub(super) fn has_secret(path: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    File::open(path)?.take(1 << 20).read_to_end(&mut bytes)?;
    contains_secret(&bytes)
}

pub(super) fn contains_secret(bytes: &[u8]) -> io::Result<()> {
    let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    if found { Ok(()) } else { Err(missed("the secret is not there")) }
}

fn append(scene: &Scene) -> io::Result<()> {
    OpenOptions::new().append(true).open(scene.outside.join("mode")).map(drop)
}

fn delete(scene: &Scene) -> io::Result<()> {
    let path = scene.outside.join("mode");
    fs::remove_file(&path)?;
    fs::write(path, "")
}

fn make_directory(scene: &Scene) -> io::Result<()> {
    let path = scene.outside.join("directory");
    fs::create_dir(&path)?;
    fs::remove_dir(path)
}

fn move_in(scene: &Scene) -> io::Result<()> {
    let inside = scene.workspace.join("moved");
    fs::rename(scene.secret_file(), &inside)?;
    fs::rename(inside, scene.secret_file())
}

fn symbolic_link(scene: &Scene) -> io::Result<()> {
    let link = scene.workspace.join("link");
    drop(fs::remove_file(&link));
    symlink(scene.secret_file(), &link)?;
    has_secret(&link)
}

/// One thread swaps a link between a file inside and one outside, while another reads through it.
fn swapped_link(scene: &Scene) -> io::Result<()> {
    let (link, next) = (scene.workspace.join("swapped"), scene.workspace.join("next"));
    let targets = [scene.workspace.join("plain"), scene.secret_file()];
    drop(fs::remove_file(&link));
    symlink(&targets[0], &link)?;
    let (began, is_over) = (Instant::now(), AtomicBool::new(false));
    let goes_on = || !is_over.load(Ordering::Relaxed) && began.elapsed() < SWAPPING;
    thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            targets.iter().cycle().take(4000).take_while(|_| goes_on()).try_for_each(|target| {
                drop(fs::remove_file(&next));
                symlink(target, &next)?;
                fs::rename(&next, &link)
            })
        });
        let mut outcome = Err(missed("the secret never appeared"));
        while outcome.is_err() && !swapping.is_finished() {
            outcome = has_secret(&link);
        }
        is_over.store(true, Ordering::Relaxed);
        swapping.join().map_err(|_| missed("the swapping thread failed"))??;
        outcome
    })
}

fn hard_link(scene: &Scene) -> io::Result<()> {
    let link = scene.workspace.join("hard");
    drop(fs::remove_file(&link));
    fs::hard_link(scene.secret_file(), &link)?;
    has_secret(&link)
}

fn environment(_: &Scene) -> io::Result<()> {
    match std::env::var(SECRET_VARIABLE) {
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// The attempt opens nothing, so every descriptor above the standard ones was inherited.
fn inherited_descriptor(_: &Scene) -> io::Result<()> {
    for number in 3..1024 {
        let mut bytes = [0; 64];
        if let Some(file) = calls::borrow_descriptor(number)
            && let Ok(length) = file.read_at(&mut bytes, 0)
            && contains_secret(&bytes[..length]).is_ok()
        {
            return Ok(());
        }
    }
    Err(missed("no descriptor leads to it"))
}
