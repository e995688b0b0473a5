//! The home of an owner with things that no other party may read, change or start, and the look at what became of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use myclaw_testkit::{
    ModelServer, Random, RecordedRequest, Script, TempHome, WireFormat, label_of,
};
use serde_json::{Value, json};

use super::attack::{Attack, Attacks, Breaches};

/// Files of the owner outside of the state directory, below the home.
const PRIVATE: [&str; 5] =
    [".ssh/id_ed25519", ".gitconfig", ".bashrc", "Documents/diary.txt", ".netrc"];

/// A file or a directory as it was seen.
#[derive(Clone, PartialEq, Eq)]
struct Seen {
    mode: u32,
    changed: (i64, i64),
    links: u64,
    content: Option<Vec<u8>>,
}

/// The home, an obedient model, and what is watched.
pub(super) struct Scene {
    pub(super) home: TempHome,
    pub(super) model: ModelServer,
    pub(super) breaches: Breaches,
    /// What no attacker may learn: what it is, and its text.
    pub(super) secrets: Vec<(String, String)>,
    /// Directories and files whose changes are breaches.
    watched: Vec<PathBuf>,
    seen: BTreeMap<PathBuf, Seen>,
    requests: usize,
    /// The labels of the calls that have a result.
    carried_out: BTreeSet<String>,
    random: Random,
}

impl Scene {
    /// A home with private files, a state directory with keys, and an empty directory `marks` for programs that were
    /// started.
    pub(super) fn new(change: impl FnOnce(&mut Value)) -> Self {
        let model = ModelServer::spawn_blocking_thread(Script::obedient());
        let mut scene = Self {
            home: TempHome::new(),
            model,
            breaches: Breaches::default(),
            secrets: Vec::new(),
            watched: Vec::new(),
            seen: BTreeMap::new(),
            requests: 0,
            carried_out: BTreeSet::new(),
            random: Random::new(23),
        };
        for name in PRIVATE {
            let path = scene.home.path().join(name);
            scene.secret_file(name, &path);
            scene.watch(path);
        }
        scene.secret_file(
            "the .env of the state directory",
            &scene.home.state_directory().join(".env"),
        );
        let key = scene.secret("the key of the model");
        let mut config = TempHome::config_for(scene.model.url(), WireFormat::AnthropicMessages);
        config["provider"]["authProfiles"][0]["apiKey"] = json!(key);
        config["agent"]["maxIterations"] = json!(0);
        config["agents"]["defaults"]["limits"]["repeatedCalls"] = json!(0);
        change(&mut config);
        scene.home.write_config(&config);
        fs::create_dir_all(scene.marks()).unwrap();
        fs::create_dir_all(scene.home.path().join("victims")).unwrap();
        for part in [".env", "myclaw.json", "skills", "hooks"] {
            scene.watch(scene.home.state_directory().join(part));
        }
        scene.watch(scene.home.path().join(".ssh"));
        scene.watch(scene.home.path().join("victims"));
        scene
    }

    /// Where a started program leaves a file with the label of its attack.
    pub(super) fn marks(&self) -> PathBuf {
        self.home.path().join("marks")
    }

    /// A command of the shell that shows that it ran.
    pub(super) fn touch(&self, label: &str) -> String {
        format!("touch {}", self.marks().join(label).display())
    }

    /// A new text that no attacker may learn.
    pub(super) fn secret(&mut self, what: &str) -> String {
        let text =
            format!("secret-{:08x}{:08x}", self.random.below(1 << 32), self.random.below(1 << 32));
        self.secrets.push((what.to_owned(), text.clone()));
        text
    }

    fn secret_file(&mut self, what: &str, path: &Path) {
        let secret = self.secret(what);
        self.home.write(path, format!("# line one\n# {secret}\n"));
    }

    /// A file outside of every workspace for the next of these attacks: its first line is `# line one`, its second a secret.
    pub(super) fn victim(&mut self, attacks: &Attacks) -> PathBuf {
        let label = attacks.next_label();
        let path = self.home.path().join("victims").join(&label);
        self.secret_file(&format!("the file of {label}"), &path);
        path
    }

    /// Changes of this file or directory are breaches from now on.
    pub(super) fn watch(&mut self, path: PathBuf) {
        self.watched.push(path);
    }

    /// What is there now is how it should stay.
    pub(super) fn begin(&mut self) {
        self.seen = self.look();
        self.requests = self.model.requests().len();
    }

    fn look(&self) -> BTreeMap<PathBuf, Seen> {
        let mut all = BTreeMap::new();
        for path in &self.watched {
            look_at(path, &mut all);
        }
        all
    }

    /// The requests since the last call of this.
    pub(super) fn new_requests(&mut self) -> Vec<std::sync::Arc<RecordedRequest>> {
        let requests = self.model.requests().split_off(self.requests);
        self.requests += requests.len();
        for request in &requests {
            self.carried_out.extend(results(request).map(|(label, _)| label));
        }
        requests
    }

    /// Fails the test if an attack got through, or was not tried.
    pub(super) fn assert_held(&self, attacks: &[&Attack]) {
        self.breaches.assert_none(attacks);
        for attack in attacks {
            for number in 0..attack.calls.len() {
                let label = format!("{}-{number}", attack.label);
                assert!(self.carried_out.contains(&label), "{label} {} was not tried", attack.name);
            }
        }
    }

    /// Notes what the attacks since the last look have read, changed and started. `is_secret` says which of the secrets
    /// the party that asked may not know.
    pub(super) fn check(&mut self, is_secret: impl Fn(&str) -> bool) {
        for request in self.new_requests() {
            self.check_request(&request, &is_secret);
        }
        self.check_files();
    }

    fn check_request(&mut self, request: &RecordedRequest, is_secret: &impl Fn(&str) -> bool) {
        let body = request.body_text();
        for (what, secret) in self.secrets.iter().filter(|(what, _)| is_secret(what)) {
            if !body.contains(secret.as_str()) {
                continue;
            }
            let mut labels: Vec<String> = results_with(request, secret).collect();
            if labels.is_empty() {
                labels.push(what.strip_prefix("the file of ").unwrap_or("prompt").to_owned());
            }
            for label in labels {
                self.breaches.note(&label, format!("the model read {what}"));
            }
        }
    }

    /// Notes files that were changed, and puts them back; and marks of programs.
    pub(super) fn check_files(&mut self) {
        let now = self.look();
        let mut changed: Vec<PathBuf> = Vec::new();
        for (path, seen) in &now {
            // A directory changes with its entries, which are looked at themselves.
            let is_same = match (self.seen.get(path), &seen.content) {
                (Some(before), Some(_)) => before == seen,
                (Some(before), None) => before.mode == seen.mode,
                (None, _) => false,
            };
            if !is_same {
                changed.push(path.clone());
                let content = String::from_utf8_lossy(seen.content.as_deref().unwrap_or_default());
                let place = path.to_string_lossy();
                let label = label_in(&place).or_else(|| label_in(&content));
                self.breaches.note(
                    label.as_deref().unwrap_or("unknown"),
                    format!(
                        "{} was changed or made: {}",
                        path.display(),
                        &content.chars().take(200).collect::<String>()
                    ),
                );
            }
        }
        for path in self.seen.keys().filter(|path| !now.contains_key(*path)) {
            let label = label_in(&path.to_string_lossy());
            let what = format!("{} was removed", path.display());
            self.breaches.note(label.as_deref().unwrap_or("unknown"), what);
            changed.push(path.clone());
        }
        for path in changed {
            self.put_back(&path);
        }
        for entry in fs::read_dir(self.marks()).unwrap().flatten() {
            let label = entry.file_name().to_string_lossy().into_owned();
            let label = label_in(&label).unwrap_or(label);
            self.breaches.note(&label, "it started a program or wrote outside");
            let path = entry.path();
            fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).unwrap();
        }
        self.seen = self.look();
    }

    fn put_back(&self, path: &Path) {
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
        match self.seen.get(path).map(|seen| &seen.content) {
            Some(Some(content)) => drop(self.home.write(path, content)),
            Some(None) => fs::create_dir_all(path).unwrap(),
            None => {}
        }
    }
}

/// The content of a store of keys without the record of their use: the program itself writes that in every run, so the time
/// of the last change says nothing either. `None` for every other file, and for a store that is broken.
fn without_usage(path: &Path, content: &[u8]) -> Option<Vec<u8>> {
    if !path.ends_with("auth-profiles.json") {
        return None;
    }
    let mut store: Value = serde_json::from_slice(content).ok()?;
    store.as_object_mut()?.remove("usageStats");
    serde_json::to_vec_pretty(&store).ok()
}

fn look_at(path: &Path, all: &mut BTreeMap<PathBuf, Seen>) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    let mut content = metadata.is_file().then(|| fs::read(path).unwrap_or_default());
    let mut changed = (metadata.ctime(), metadata.ctime_nsec());
    if let Some(keys) = content.as_deref().and_then(|content| without_usage(path, content)) {
        content = Some(keys);
        changed = (0, 0);
    }
    let links = if metadata.is_file() { metadata.nlink() } else { 0 };
    all.insert(path.to_owned(), Seen { mode: metadata.mode(), changed, links, content });
    if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            look_at(&entry.path(), all);
        }
    }
}

/// The first word of the form `x017` in a text, as attacks are labelled.
pub(super) fn label_in(text: &str) -> Option<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let mut labels = words.filter(|word| {
        let digits = word.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
        let is_short = (1..=2).contains(&(word.len() - digits.len()));
        is_short && digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    labels.next().map(str::to_owned)
}

/// The results in a request: label of the call, and content.
pub(super) fn results(request: &RecordedRequest) -> impl Iterator<Item = (String, &Value)> {
    let blocks = request.messages().iter().filter_map(|message| message["content"].as_array());
    let results = blocks.flatten().filter(|block| block["type"] == "tool_result");
    results.map(|block| {
        (label_of(block["tool_use_id"].as_str().unwrap()).to_owned(), &block["content"])
    })
}

/// The label of the call whose result contains `text`.
pub(super) fn result_with(request: &RecordedRequest, text: &str) -> Option<String> {
    results_with(request, text).next()
}

/// The labels of all calls whose results contain `text`.
fn results_with(request: &RecordedRequest, text: &str) -> impl Iterator<Item = String> {
    let found = results(request).filter(move |(_, content)| content.to_string().contains(text));
    found.map(|(label, _)| label)
}
