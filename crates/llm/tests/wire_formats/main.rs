//! The wire formats through their public entry points: recorded streams, whole requests, and real sockets.

#[cfg(test)]
mod bedrock;
#[cfg(test)]
mod context;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod decoding;
#[cfg(test)]
mod driver;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod gateways;
#[cfg(test)]
mod google;
#[cfg(test)]
mod hosts;
#[cfg(test)]
mod left_out;
#[cfg(test)]
mod oddities;
#[cfg(test)]
mod omissions;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod request;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod responses;
#[cfg(test)]
mod streams;
#[cfg(test)]
#[expect(dead_code, reason = "shared with the tests of cloud access, which look at forms too")]
mod support;
#[cfg(test)]
mod thinking;
