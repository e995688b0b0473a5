//! The file tools through their public interface, on real files.
#![forbid(unsafe_code)]

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod edit;
#[cfg(test)]
mod edit_properties;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod patch_forms;
#[cfg(test)]
mod patch_git;
#[cfg(test)]
mod patch_properties;
#[cfg(test)]
mod patch_safety;
#[cfg(test)]
mod pictures;
#[cfg(test)]
mod preview;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod read;
#[cfg(test)]
mod stale;
#[cfg(test)]
mod undo;
#[cfg(test)]
mod write;
