//! Turns the arguments of a call into commands of `agent-browser`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::error::BrowserError;

/// What a call can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    Open,
    Snapshot,
    Click,
    Fill,
    Type,
    Press,
    Select,
    Hover,
    Drag,
    Upload,
    Dialog,
    Wait,
    Screenshot,
    Tabs,
    Console,
    Pdf,
    Evaluate,
    Close,
}

impl Action {
    pub(crate) const ALL: [(&str, Self); 18] = [
        ("open", Self::Open),
        ("snapshot", Self::Snapshot),
        ("click", Self::Click),
        ("fill", Self::Fill),
        ("type", Self::Type),
        ("press", Self::Press),
        ("select", Self::Select),
        ("hover", Self::Hover),
        ("drag", Self::Drag),
        ("upload", Self::Upload),
        ("dialog", Self::Dialog),
        ("wait", Self::Wait),
        ("screenshot", Self::Screenshot),
        ("tabs", Self::Tabs),
        ("console", Self::Console),
        ("pdf", Self::Pdf),
        ("evaluate", Self::Evaluate),
        ("close", Self::Close),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, action)| *action == self).map_or("", |(name, _)| name)
    }
}

/// What is done with a dialog or with tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operation {
    Accept,
    Dismiss,
    List,
    New,
    Switch,
    Close,
}

/// The arguments of a call. Which ones an action needs is checked when its command is made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    pub(crate) action: Action,
    pub(crate) url: Option<String>,
    #[serde(rename = "ref")]
    pub(crate) element: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) key: Option<String>,
    #[serde(default)]
    pub(crate) values: Vec<String>,
    #[serde(default)]
    pub(crate) paths: Vec<String>,
    pub(crate) operation: Option<Operation>,
    pub(crate) tab: Option<String>,
    pub(crate) script: Option<String>,
    pub(crate) seconds: Option<f64>,
    #[serde(default)]
    pub(crate) interactive: bool,
    #[serde(default)]
    pub(crate) full: bool,
}

impl Arguments {
    /// The command for an action that needs nothing but its arguments; `None` for any other action.
    pub(crate) fn command(&self) -> Result<Option<Vec<String>>, BrowserError> {
        let words = match self.action {
            Action::Snapshot => self.snapshot()?,
            Action::Click => vec!["click".to_owned(), self.element()?],
            Action::Hover => vec!["hover".to_owned(), self.element()?],
            Action::Fill => vec!["fill".to_owned(), self.element()?, self.text()?],
            Action::Type => match &self.element {
                Some(_) => vec!["type".to_owned(), self.element()?, self.text()?],
                None => vec!["keyboard".to_owned(), "type".to_owned(), self.text()?],
            },
            Action::Press => vec!["press".to_owned(), plain(self.need(&self.key, "key")?, "key")?],
            Action::Select => {
                if self.values.is_empty() {
                    return Err(self.missing("values"));
                }
                let head = ["select".to_owned(), self.element()?];
                head.into_iter().chain(self.values.iter().cloned()).collect()
            }
            Action::Drag => {
                let to = element(self.need(&self.to, "to")?, "to")?;
                vec!["drag".to_owned(), self.element()?, to]
            }
            Action::Dialog => self.dialog()?,
            Action::Wait => self.wait()?,
            Action::Evaluate => {
                // Encoded, because a script that begins with a dash would be an option.
                let script = STANDARD.encode(self.need(&self.script, "script")?);
                vec!["eval".to_owned(), "-b".to_owned(), script]
            }
            Action::Open
            | Action::Upload
            | Action::Screenshot
            | Action::Tabs
            | Action::Console
            | Action::Pdf
            | Action::Close => return Ok(None),
        };
        Ok(Some(words))
    }

    /// The element that the action is about.
    pub(crate) fn element(&self) -> Result<String, BrowserError> {
        element(self.need(&self.element, "ref")?, "ref")
    }

    /// The address to open. `https://` may be left out.
    pub(crate) fn address(&self) -> Result<String, BrowserError> {
        let url = self.need(&self.url, "url")?.trim();
        if url.contains("://") { Ok(url.to_owned()) } else { Ok(format!("https://{url}")) }
    }

    /// The id of the tab.
    pub(crate) fn tab(&self) -> Result<String, BrowserError> {
        plain(self.need(&self.tab, "tab")?, "tab")
    }

    fn text(&self) -> Result<String, BrowserError> {
        Ok(self.need(&self.text, "text")?.to_owned())
    }

    fn snapshot(&self) -> Result<Vec<String>, BrowserError> {
        let mut words = vec!["snapshot".to_owned()];
        words.push(if self.interactive { "-i" } else { "-c" }.to_owned());
        if self.element.is_some() {
            words.extend(["-s".to_owned(), self.element()?]);
        }
        Ok(words)
    }

    fn dialog(&self) -> Result<Vec<String>, BrowserError> {
        let words = match self.operation {
            None | Some(Operation::List) => vec!["status".to_owned()],
            Some(Operation::Accept) => {
                ["accept".to_owned()].into_iter().chain(self.text.clone()).collect()
            }
            Some(Operation::Dismiss) => vec!["dismiss".to_owned()],
            Some(_) => {
                return Err(BrowserError::Argument(
                    "the operation of a dialog is accept or dismiss".to_owned(),
                ));
            }
        };
        Ok(["dialog".to_owned()].into_iter().chain(words).collect())
    }

    fn wait(&self) -> Result<Vec<String>, BrowserError> {
        /// Longest wait that names only a time, in seconds.
        const MAX_WAIT: f64 = 20.0;
        let words = if let Some(text) = &self.text {
            vec!["--text".to_owned(), text.clone()]
        } else if let Some(url) = &self.url {
            vec!["--url".to_owned(), url.clone()]
        } else if self.element.is_some() {
            vec![self.element()?]
        } else if let Some(seconds) = self.seconds.filter(|seconds| *seconds > 0.0) {
            vec![((seconds.min(MAX_WAIT) * 1000.0) as u64).to_string()]
        } else {
            return Err(self.missing("text, url, ref or seconds"));
        };
        Ok(["wait".to_owned()].into_iter().chain(words).collect())
    }

    fn need<'a>(&self, argument: &'a Option<String>, name: &str) -> Result<&'a str, BrowserError> {
        argument.as_deref().ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &str) -> BrowserError {
        BrowserError::Argument(format!("the action {} needs {name}", self.action.name()))
    }
}

/// An element: a reference from a snapshot (`e12`, also as `@e12`, `ref=e12` or `[ref=e12]`) or a CSS selector.
fn element(text: &str, name: &str) -> Result<String, BrowserError> {
    let text = text.trim();
    let bare = text.trim_matches(['[', ']', '@']).trim_start_matches("ref=");
    let is_reference = bare.strip_prefix('e').is_some_and(|number| {
        !number.is_empty() && number.chars().all(|char| char.is_ascii_digit())
    });
    if is_reference { Ok(format!("@{bare}")) } else { plain(text, name) }
}

/// A text that is not an option of `agent-browser`.
fn plain(text: &str, name: &str) -> Result<String, BrowserError> {
    if text.is_empty() || text.starts_with('-') {
        return Err(BrowserError::Argument(format!(
            "{name} must not be empty or begin with a dash; take a reference such as e5 from a snapshot"
        )));
    }
    Ok(text.to_owned())
}
