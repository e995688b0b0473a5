//! Through the provider interface: requests in, messages and events out.

mod conversation;
mod documentation;
mod protocol;
