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
const REAL: [(&str, &str); 12] = [
    ("github__create_issue", "Create a new issue in a GitHub repository"),
    ("github__list_pull_requests", "List pull requests of a repository"),
    ("github__merge_pull_request", "Merge a pull request"),
    ("files__read_text_file", "Read the complete contents of a file as text"),
    ("files__directory_tree", "Get a recursive tree view of files and directories"),
    ("files__move_file", "Move or rename files and directories"),
    ("slack__post_message", "Post a message to a channel"),
    ("calendar__create_event", "Create an event with a start and an end"),
    ("postgres__query", "Run a read-only SQL query against the database"),
    ("browser__take_screenshot", "Take a picture of the current page"),
    ("weather__getForecast", "The forecast of the next days for a place"),
    ("mail__sendEmail", "Send an e-mail with attachments"),
];

fn many() -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = (0..488)
        .map(|number| {
            tool(
                &format!("bulk__operation_{number}"),
                &format!("Performs step {number} of the pipeline"),
            )
        })
        .collect();
    tools.extend(REAL.map(|(name, description)| tool(name, description)));
    tools
}

#[test]
fn few_small_tools_are_offered_as_they_are() {
    let few: Vec<_> = REAL.iter().map(|(name, about)| tool(name, about)).collect();
    assert_eq!(offered_tools(few).len(), REAL.len());
    let large = vec![tool("a__b", &"words ".repeat(2_000))];
    assert_eq!(offered_tools(large)[0].schema().name, FINDER);
    let many: Vec<_> = (0..21).map(|number| tool(&format!("a__{number}"), "")).collect();
    assert_eq!(offered_tools(many)[0].schema().name, FINDER);
}

#[test]
fn five_hundred_tools_take_at_most_1500_tokens() {
    let offered = offered_tools(many());
    assert_eq!(offered.len(), 1);
    let ToolSchema { name, description, parameters } = offered[0].schema();
    let bytes = name.len() + description.len() + parameters.to_string().len();
    assert!(bytes <= MAX_TOKENS * BYTES_PER_TOKEN, "{bytes}");
}

#[test]
fn a_request_in_other_words_finds_the_right_tool_among_five_hundred() {
    let finder = Finder::new(many());
    for (wanted, name) in [
        ("open a new issue on GitHub", "github__create_issue"),
        ("report an issue in the repository", "github__create_issue"),
        ("which pull requests are open", "github__list_pull_requests"),
        ("merging the pull request", "github__merge_pull_request"),
        ("read the contents of a text file", "files__read_text_file"),
        ("show the tree of the directories", "files__directory_tree"),
        ("rename a file", "files__move_file"),
        ("post something to the Slack channel", "slack__post_message"),
        ("create a calendar event", "calendar__create_event"),
        ("run SQL on the database", "postgres__query"),
        ("take screenshots", "browser__take_screenshot"),
        ("weather forecast for Berlin", "weather__getForecast"),
        ("send an email to Ann", "mail__sendEmail"),
        ("getForecast", "weather__getForecast"),
    ] {
        let found: Vec<&str> =
            finder.found(wanted).iter().map(|tool| tool.schema().name.as_str()).collect();
        assert!(found.iter().take(3).any(|found| *found == name), "{wanted}: {found:?}");
    }
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
