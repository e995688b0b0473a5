//! Through the provider interface: requests in, messages and events out.

mod documentation;
mod protocol;
mod session;
