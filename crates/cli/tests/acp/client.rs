//! An editor that records what it receives.

use std::collections::HashMap;
use std::time::Duration;

use myclaw_testkit::{
    ChildOutput, ModelServer, RunningChild, Script, Signal, TempHome, WireFormat,
};
use serde_json::{Value, json};

use crate::schema;

/// How long the program may take to leave: far above what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of `myclaw acp`.
pub(crate) struct Client {
    child: RunningChild,
    next_id: u64,
    /// The requests' methods, by their ids.
    methods: HashMap<String, String>,
    /// How many bytes of the output were looked at by [`Client::updates`].
    looked_at: usize,
}

impl Client {
    /// Starts the program, without a word.
    pub(crate) fn start(home: &TempHome, arguments: &[&str]) -> Self {
        let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
        let child = RunningChild::spawn_piped(command.arg("acp").args(arguments));
        Self { child, next_id: 0, methods: HashMap::new(), looked_at: 0 }
    }

    /// Starts the program and introduces a client that can show notices and compactions.
    pub(crate) fn introduced(home: &TempHome) -> Self {
        let mut client = Self::start(home, &[]);
        let session = json!({"notices": {}, "compaction": {}});
        let answer = client.request(
            "initialize",
            &json!({"protocolVersion": 1, "clientCapabilities": {"session": session}}),
        );
        assert_eq!(answer["result"]["protocolVersion"], 1);
        client
    }

    /// A home with a server that follows `script`, an introduced client, and the id of a session that it has begun in
    /// the workspace.
    pub(crate) fn with_session(script: impl Into<Script>) -> (TempHome, ModelServer, Self, String) {
        let server = ModelServer::spawn_blocking_thread(script);
        let home = TempHome::new();
        home.use_server(&server, WireFormat::AnthropicMessages);
        let mut client = Self::introduced(&home);
        let session = client.new_session(&home);
        (home, server, client, session)
    }

    /// Begins a session in the workspace; gives its id.
    pub(crate) fn new_session(&mut self, home: &TempHome) -> String {
        std::fs::create_dir_all(home.workspace()).unwrap();
        let answer =
            self.request("session/new", &json!({"cwd": home.workspace(), "mcpServers": []}));
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Sends a request.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.methods.insert(id.to_string(), method.to_owned());
        self.send_line(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        id
    }

    /// Sends a text as a prompt.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.ask("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    /// Sends a text as a prompt, and waits for its answer.
    pub(crate) fn converse(&mut self, session: &str, text: &str) -> Value {
        let id = self.prompt(session, text);
        self.answer(id)
    }

    /// Sends what wants no answer.
    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send_line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends anything.
    pub(crate) fn send_line(&mut self, line: &str) {
        self.child.send(&format!("{line}\n"));
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&self, id: u64) -> Value {
        self.line_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},"))
    }

    /// Waits for a line that holds `text`.
    pub(crate) fn line_with(&self, text: &str) -> Value {
        let line = self.child.wait_for_stdout_line(text);
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The session updates since the last call.
    pub(crate) fn updates(&mut self) -> Vec<Value> {
        let output = self.child.wait_for_stdout("");
        let new = output[self.looked_at..].to_owned();
        self.looked_at = output.len();
        new.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|message| message["method"] == "session/update")
            .map(|message| message["params"]["update"].clone())
            .collect()
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Closes the program's input and waits for its end. Checks that all it wrote was the protocol's.
    pub(crate) fn finish(self) -> ChildOutput {
        let output = self.child.wait(PATIENCE);
        output.assert_code(0);
        schema::check(&output.stdout(), &self.methods);
        output
    }
}

/// The updates of a kind.
pub(crate) fn of_kind<'a>(updates: &'a [Value], kind: &str) -> Vec<&'a Value> {
    updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
}

/// The text of all chunks of a kind, one behind the other.
pub(crate) fn text_of(updates: &[Value], kind: &str) -> String {
    of_kind(updates, kind)
        .iter()
        .map(|update| update["content"]["text"].as_str().unwrap_or_default())
        .collect()
}
