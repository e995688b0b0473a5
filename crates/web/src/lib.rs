//! The web tools, and the guard that decides which addresses they may connect to.
//!
//! Pages are written by strangers, and so are the addresses in them. Every connection goes through [`AddressGuard`],
//! and everything that comes back is marked as external content. This crate knows neither sessions nor the config file:
//! it takes values.
#![forbid(unsafe_code)]

mod charset;
mod declarations;
mod download;
mod fetch;
mod guard;
mod html;
mod image;
mod pictures;
mod proxy;
mod search;

pub use declarations::DECLARATIONS;
pub use download::{Download, DownloadError, DownloadOptions, Downloader, Wanted};
pub use fetch::{FetchLimits, WebFetchTool};
pub use futures_util::future::BoxFuture;
pub use guard::{
    AddressGuard, AddressKind, AddressRules, AllowedHost, InvalidHost, Lookup, PrivateNetworks,
    Refusal, SystemLookup, address_kind,
};
pub use html::{Readable, to_markdown};
pub use image::{ImageTool, Sight, Viewer};
pub use pictures::{MadePicture, NoPicture, PictureForm, PictureService, PictureShape};
pub use proxy::{Proxy, ProxyAddress, ProxyHosts, ProxyLimits, ProxyRules};
pub use search::{SearchOptions, SearchService, WebSearchTool};
