//! Files that go out: to the server's own service (XEP-0363), which gives an address for them.

use std::time::Duration;

use super::xml::{Element, ns};
use super::{AskError, Xmpp, jid, question};
use crate::http::{self, Failure, client, exchange};
use crate::{PartFile, SendFailure};

/// Services of a server that are asked whether they take files.
const MOST_SERVICES: usize = 20;
/// Headers that a service may ask for (XEP-0363, section 5).
const HEADERS: [&str; 3] = ["authorization", "cookie", "expires"];
/// Time to store a file.
const STORING: Duration = Duration::from_secs(5 * 60);
/// Most of an answer that is read.
const MOST_ANSWER: usize = 64 * 1024;

/// A service that takes files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Upload {
    service: String,
    /// Largest file, in bytes.
    most: Option<u64>,
}

impl Xmpp {
    /// Stores a file; gives its address.
    pub(super) async fn upload(&self, file: &PartFile) -> Result<String, SendFailure> {
        let never = |reason: String| SendFailure::Never { reason };
        let later = |reason: String| SendFailure::Later { after: None, reason };
        let bytes = file.read().await?;
        let size = bytes.len() as u64;
        if size > self.options.most_file_bytes {
            return Err(never(format!(
                "the file has {size} bytes, which is too much (mediaMaxMb)"
            )));
        }
        let asked = self.upload_service().await.map_err(|error| later(error.to_string()))?;
        let upload = asked.ok_or_else(|| never("the XMPP server takes no files".to_owned()))?;
        if let Some(most) = upload.most.filter(|most| size > *most) {
            return Err(never(format!("the file has {size} bytes, and the server takes {most}")));
        }
        let request = Element::new("request", ns::UPLOAD)
            .with("filename", &file.name)
            .with("size", &size.to_string())
            .with("content-type", "application/octet-stream");
        let answer = self.ask(question("get", Some(&upload.service), request)).await;
        let answer = answer.map_err(|error| match error {
            AskError::Refused(refused) if !refused.is_for_now => {
                never(format!("the XMPP server refused the file: {}", refused.reason))
            }
            error => later(error.to_string()),
        })?;
        let slot = answer.get("slot", ns::UPLOAD);
        let part = |name| slot.and_then(|slot| slot.get(name, ns::UPLOAD));
        let (Some(put), Some(get)) = (part("put"), part("get")) else {
            return Err(later("the XMPP server gave no place for the file".to_owned()));
        };
        let address = |element: &Element| element.attribute("url").unwrap_or_default().to_owned();
        let (target, shown) = (address(put), address(get));
        let client = client(&target).map_err(later)?;
        let mut request = client.put(&target).body(bytes);
        request = request.header("content-type", "application/octet-stream");
        for header in put.children.iter().filter(|child| child.is("header", ns::UPLOAD)) {
            let name = header.attribute("name").unwrap_or_default().to_lowercase();
            let value = header.text.replace(['\r', '\n'], "");
            if HEADERS.contains(&name.as_str()) {
                request = request.header(name, value);
            }
        }
        // Until its address is said, nobody sees the file, so all this can be repeated.
        match exchange(request, MOST_ANSWER, STORING).await {
            Ok(http::Answer { status: 200..300, .. }) => Ok(shown),
            Ok(answer) => Err(later(format!("the server's file service said {}", answer.status))),
            Err(Failure::NotSent(reason) | Failure::Unknown(reason)) => {
                Err(later(format!("the server's file service: {reason}")))
            }
            Err(Failure::TooLong(_)) => Err(later("the file service said too much".to_owned())),
        }
    }

    /// The service that takes files, if there is one.
    async fn upload_service(&self) -> Result<Option<Upload>, AskError> {
        if let Some(upload) = &self.memory.lock().upload {
            return Ok(Some(upload.clone()));
        }
        let domain = jid::domain(&self.options.address).to_owned();
        let items =
            self.ask(question("get", Some(&domain), Element::new("query", ns::ITEMS))).await?;
        let items = items.get("query", ns::ITEMS).into_iter().flat_map(|items| &items.children);
        let items = items.filter_map(|item| item.attribute("jid").map(str::to_owned));
        for service in std::iter::once(domain).chain(items.take(MOST_SERVICES)) {
            let about = Element::new("query", ns::INFO);
            let info = match self.ask(question("get", Some(&service), about)).await {
                Ok(info) => info,
                Err(AskError::Refused(_)) => continue,
                Err(error) => return Err(error),
            };
            if super::has_feature(&info, ns::UPLOAD) {
                let upload = Upload { most: most_bytes(&info), service };
                self.memory.lock().upload = Some(upload.clone());
                return Ok(Some(upload));
            }
        }
        Ok(None)
    }
}

/// The largest file that a service takes.
fn most_bytes(info: &Element) -> Option<u64> {
    let forms =
        info.get("query", ns::INFO)?.children.iter().filter(|child| child.is("x", ns::DATA));
    let mut fields = forms.flat_map(|form| &form.children);
    let field = fields.find(|field| field.attribute("var") == Some("max-file-size"))?;
    field.get("value", ns::DATA)?.text.trim().parse().ok()
}
