//! The wire formats through their public entry points: recorded streams, whole requests, and real sockets.

#[cfg(test)]
mod context;
#[cfg(test)]
mod conversation;
#[cfg(test)]
mod decoding;
#[cfg(test)]
mod driver;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod oddities;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod support;
#[cfg(test)]
mod thinking;
