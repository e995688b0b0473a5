//! Fuzz targets for whatever reads bytes from a server: the two framings, and the answer in each wire format.
//!
//! [`properties`] says what must hold for any bytes; [`memory`] adds that no input may take more memory than its
//! length allows; [`policy`] does the same for commands and patterns; [`web`] says what holds for pages, [`imap`] for a mail server; [`event_stream`] mutates binary event streams so that their checksums stay right.

pub mod event_stream;
pub mod imap;
pub mod memory;
pub mod policy;
pub mod properties;
pub mod web;
