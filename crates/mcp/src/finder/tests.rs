use serde_json::json;

use super::*;

struct Named(ToolSchema);

impl Tool for Named {
    fn schema(&self) -> &ToolSchema {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        _: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text("done")) })
    }
}

fn tool(name: &str, description: &str) -> Arc<dyn Tool> {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    Arc::new(Named(ToolSchema {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
    }))
}

/// What real servers offer, among hundreds of others.
const REAL: [(&str, &str); 20] = [
    ("github__create_issue", "Create a new issue in a GitHub repository"),
    ("github__list_pull_requests", "List pull requests of a repository"),
    ("github__merge_pull_request", "Merge a pull request"),
    ("github__search_code", "Search for code across GitHub repositories"),
    ("github__create_branch", "Create a new branch in a GitHub repository"),
    ("files__read_text_file", "Read the complete contents of a file as text"),
    ("files__directory_tree", "Get a recursive tree view of files and directories"),
    ("files__move_file", "Move or rename files and directories"),
    (
        "files__write_file",
        "Create a new file or completely overwrite an existing file with new content",
    ),
    ("slack__post_message", "Post a message to a channel"),
    ("slack__list_channels", "List public channels in the workspace"),
    ("slack__add_reaction", "Add an emoji reaction to a message"),
    ("calendar__create_event", "Create an event with a start and an end"),
    ("calendar__find_free_time", "Find times at which all attendees are free"),
    ("postgres__query", "Run a read-only SQL query against the database"),
    ("browser__take_screenshot", "Take a picture of the current page"),
    ("browser__navigate", "Navigate to a URL"),
    ("weather__getForecast", "The forecast of the next days for a place"),
    ("mail__sendEmail", "Send an e-mail with attachments"),
    ("mail__search_messages", "Search the mailbox for messages by sender, subject or date"),
];

/// What the servers that nobody means here offer: verbs and things of all trades, so that their words compete.
const VERBS: [&str; 24] = [
    "get", "list", "update", "delete", "archive", "export", "validate", "sync", "assign",
    "approve", "cancel", "clone", "compare", "count", "describe", "disable", "enable", "import",
    "lock", "publish", "refund", "restore", "schedule", "tag",
];
const THINGS: [&str; 20] = [
    "invoice",
    "customer",
    "order",
    "shipment",
    "deployment",
    "pipeline",
    "dashboard",
    "alert",
    "ticket",
    "contract",
    "employee",
    "payroll",
    "campaign",
    "lead",
    "vehicle",
    "sensor",
    "playlist",
    "recipe",
    "course",
    "exam",
];

fn many() -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for verb in VERBS {
        for thing in THINGS {
            tools.push(tool(
                &format!("bulk__{verb}_{thing}"),
                &format!("Use this to {verb} a {thing} of the current account by its number"),
            ));
        }
    }
    tools.extend(REAL.map(|(name, description)| tool(name, description)));
    assert_eq!(tools.len(), 500);
    tools
}

#[test]
fn few_small_tools_are_offered_as_they_are() {
    let few: Vec<_> = REAL[..12].iter().map(|(name, about)| tool(name, about)).collect();
    assert_eq!(offered_tools(few, None).len(), 12);
    let large = vec![tool("a__b", &"words ".repeat(2_000))];
    assert_eq!(offered_tools(large, None)[0].schema().name, FINDER);
    let many: Vec<_> = (0..21).map(|number| tool(&format!("a__{number}"), "")).collect();
    assert_eq!(offered_tools(many, None)[0].schema().name, FINDER);
}

#[test]
fn five_hundred_tools_take_at_most_1500_tokens() {
    let offered = offered_tools(many(), None);
    assert_eq!(offered.len(), 1);
    let ToolSchema { name, description, parameters } = offered[0].schema();
    let bytes = name.len() + description.len() + parameters.to_string().len();
    assert!(bytes <= MAX_TOKENS * BYTES_PER_TOKEN, "{bytes}");
}

/// Requests in other words than those of the tools: what is wanted, and the tool.
const REQUESTS: [(&str, &str); 40] = [
    ("open a new issue on GitHub", "github__create_issue"),
    ("report an issue in the repository", "github__create_issue"),
    ("file a bug report on github", "github__create_issue"),
    ("which pull requests are open", "github__list_pull_requests"),
    ("show me the PRs waiting for review", "github__list_pull_requests"),
    ("merging the pull request", "github__merge_pull_request"),
    ("land PR 12", "github__merge_pull_request"),
    ("find where a function is used in the source code on github", "github__search_code"),
    ("start a new git branch", "github__create_branch"),
    ("read the contents of a text file", "files__read_text_file"),
    ("what does notes.txt say", "files__read_text_file"),
    ("open the file and show its text", "files__read_text_file"),
    ("show the tree of the directories", "files__directory_tree"),
    ("what folders are there", "files__directory_tree"),
    ("rename a file", "files__move_file"),
    ("put the document into another folder", "files__move_file"),
    ("save this text into a file", "files__write_file"),
    ("overwrite the config file", "files__write_file"),
    ("post something to the Slack channel", "slack__post_message"),
    ("tell the team on slack that we are done", "slack__post_message"),
    ("which slack channels exist", "slack__list_channels"),
    ("react with a thumbs up emoji", "slack__add_reaction"),
    ("create a calendar event", "calendar__create_event"),
    ("put a meeting with Ann on my calendar", "calendar__create_event"),
    ("book an appointment for tomorrow at ten", "calendar__create_event"),
    ("when do all attendees have time", "calendar__find_free_time"),
    ("find a free slot for a meeting", "calendar__find_free_time"),
    ("run SQL on the database", "postgres__query"),
    ("select rows of a table", "postgres__query"),
    ("how many users are in postgres", "postgres__query"),
    ("take screenshots", "browser__take_screenshot"),
    ("picture of the web page", "browser__take_screenshot"),
    ("go to a website", "browser__navigate"),
    ("open this link in the browser", "browser__navigate"),
    ("weather forecast for Berlin", "weather__getForecast"),
    ("will it rain tomorrow", "weather__getForecast"),
    ("getForecast", "weather__getForecast"),
    ("send an email to Ann", "mail__sendEmail"),
    ("write a mail to the landlord", "mail__sendEmail"),
    ("look for emails from the bank", "mail__search_messages"),
];

#[test]
fn of_forty_requests_in_other_words_38_find_their_tool_among_five_hundred() {
    let finder = Finder::new(many());
    let misses: Vec<String> = REQUESTS
        .iter()
        .filter_map(|(wanted, name)| {
            let found = finder.found(wanted);
            let names: Vec<&str> = found.iter().map(|tool| tool.schema().name.as_str()).collect();
            (!names.contains(name)).then(|| format!("{wanted}: {names:?}"))
        })
        .collect();
    assert!(misses.len() <= 2, "{} misses:\n{}", misses.len(), misses.join("\n"));
}

#[test]
fn a_call_through_the_finder_is_one_of_the_tool() {
    let finder = Finder::new(many());
    let ask = |arguments: Value| finder.stands_for(arguments.as_object().unwrap());
    assert!(ask(json!({"find": "x"})).is_none());
    let (tool, given) =
        ask(json!({"call": "files__move_file", "arguments": {"path": "a"}})).unwrap().unwrap();
    assert_eq!(
        (tool.schema().name.as_str(), given["path"].as_str()),
        ("files__move_file", Some("a"))
    );
    let (_, given) =
        ask(json!({"call": "files__move_file", "arguments": "{\"path\":\"a\"}"})).unwrap().unwrap();
    assert_eq!(given["path"], "a");
    for (arguments, words) in [
        (json!({"call": "files__move"}), "the nearest names are files__move_file"),
        (json!({"call": "zzz"}), "Give `find`"),
        (json!({"call": "files__move_file", "arguments": 3}), "must be an object"),
        (json!({"call": "bash", "arguments": {}}), "no MCP tool"),
    ] {
        let error = ask(arguments.clone()).unwrap().err().unwrap();
        assert!(error.contains(words), "{arguments}: {error}");
    }
}
