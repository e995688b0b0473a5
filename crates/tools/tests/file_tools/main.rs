//! The file tools through their public interface, on real files.
#![forbid(unsafe_code)]

mod edit;
mod edit_properties;
mod harness;
mod patch_forms;
mod patch_properties;
mod patch_safety;
mod pictures;
mod read;
mod write;
