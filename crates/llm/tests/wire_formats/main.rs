//! The wire formats through their public entry points: recorded streams, whole requests, and real sockets.

#[cfg(test)]
mod driver;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod support;
