//! Skills: in the prompt, in `myclaw skills` and in the chat; and `SYSTEM.md` at the beginning of the prompt.

use std::fs;

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::{home_with, myclaw, run};

fn server(answers: usize) -> ModelServer {
    let answers: Vec<Reply> = (0..answers).map(|_| Reply::anthropic().text("Hi.")).collect();
    ModelServer::spawn_blocking_thread(Script::from(answers))
}

/// A `SKILL.md`. `more` are further lines of its front matter.
fn skill(name: &str, description: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n{more}---\n\nStep one of {name}.\n")
}

/// The system prompt of the first request.
fn system_prompt(server: &ModelServer) -> String {
    let request = &server.requests()[0];
    let system = &request.json()["system"];
    match system.as_str() {
        Some(text) => text.to_owned(),
        None => system[0]["text"].as_str().expect("a system prompt").to_owned(),
    }
}

/// The config of `home` with `skills` in it.
fn configure(home: &TempHome, server: &ModelServer, skills: Value) {
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["skills"] = skills;
    home.write_config(&config);
}

#[test]
fn the_prompt_lists_usable_skills_in_the_tools_section_the_owners_first() {
    let server = server(1);
    let home = TempHome::new();
    configure(&home, &server, json!({"load": {"extraDirs": ["~/team"]}}));
    let notes = home.write_in_workspace(
        "skills/notes/SKILL.md",
        skill(
            "notes",
            "Writes notes.",
            "metadata: {\"myclaw\": {\"requires\": {\"bins\": [\"sh\"]}}}\n",
        ),
    );
    home.write_in_workspace(
        ".claude/skills/video/SKILL.md",
        skill(
            "video",
            "Cuts videos.",
            "metadata: {\"openclaw\": {\"requires\": {\"bins\": [\"no-such-program\"]}}}\n",
        ),
    );
    let team = home.write("team/zoo/SKILL.md", skill("zoo", "Feeds animals.", ""));

    run(&home, &["run", "hello"]).assert_code(0);

    let prompt = system_prompt(&server);
    let tools = prompt.split("<tools>").nth(1).and_then(|rest| rest.split("</tools>").next());
    let list = format!(
        "paths in it start in its directory:\n- zoo: Feeds animals. ({})\n- notes: Writes notes. ({})\n",
        team.display(),
        notes.display()
    );
    assert!(tools.is_some_and(|tools| tools.ends_with(&list)), "{prompt}");
    assert!(!prompt.contains("video"), "{prompt}");
}

#[test]
fn without_skills_the_prompt_says_nothing_about_them() {
    let server = server(1);
    let home = home_with(&server);
    run(&home, &["run", "hello"]).assert_code(0);
    let prompt = system_prompt(&server);
    assert!(
        prompt.contains("Relative paths start in the working directory.\n</tools>"),
        "{prompt}"
    );
}

#[test]
fn a_skill_of_the_workspace_does_not_replace_the_owners() {
    let server = server(1);
    let home = home_with(&server);
    home.write_in_workspace("skills/deploy/SKILL.md", skill("deploy", "Sends it elsewhere.", ""));
    home.write(".agents/skills/deploy/SKILL.md", skill("deploy", "Deploys.", ""));

    run(&home, &["run", "hello"]).assert_code(0);

    let prompt = system_prompt(&server);
    assert!(prompt.contains("- deploy: Deploys. ("), "{prompt}");
    assert!(!prompt.contains("elsewhere"), "{prompt}");
    let check = run(&home, &["skills", "check"]);
    check.assert_code(1);
    assert!(check.stdout().contains("the skill deploy is in "), "{}", check.stdout());
}

#[test]
fn a_disabled_skill_is_in_no_prompt_and_no_problem() {
    let server = server(1);
    let home = TempHome::new();
    configure(&home, &server, json!({"entries": {"notes": {"enabled": false}}}));
    home.write(".myclaw/skills/notes/SKILL.md", skill("notes", "Writes notes.", ""));

    let output =
        RunningChild::run_with_input(&mut myclaw(&home, &["chat"]), "/skill notes\nhello\n");

    output.assert_code(0);
    assert!(output.stdout().contains("there is no skill `notes`"), "{}", output.stdout());
    assert!(!system_prompt(&server).contains("notes"));
    assert!(run(&home, &["skills", "list"]).stdout().contains("notes  owner  disabled"));
    run(&home, &["skills", "check"]).assert_code(0);
}

#[test]
fn the_list_has_what_programs_need() {
    let home = TempHome::new();
    let path = home.write(".codex/skills/notes/SKILL.md", skill("notes", "Writes notes.", ""));
    let needs = "metadata: {\"myclaw\": {\"requires\": {\"env\": [\"NOTES_KEY\"]}}}\n";
    home.write_in_workspace(".agents/skills/keyed/SKILL.md", skill("keyed", "Needs a key.", needs));
    let list = |command: &mut std::process::Command| -> Vec<Value> {
        let output = RunningChild::run(command);
        output.assert_code(0);
        output.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };

    let lines = list(&mut myclaw(&home, &["skills", "list", "--json"]));

    assert_eq!(
        lines[0],
        json!({
            "name": "notes",
            "description": "Writes notes.",
            "path": path,
            "origin": "owner",
            "enabled": true,
            "usable": true,
            "obstacles": []
        })
    );
    assert_eq!((&lines[1]["usable"], &lines[1]["origin"]), (&json!(false), &json!("workspace")));
    assert_eq!(lines[1]["obstacles"], json!(["needs variable NOTES_KEY"]));
    let mut with_key = myclaw(&home, &["skills", "list", "--json"]);
    assert_eq!(list(with_key.env("NOTES_KEY", "k"))[1]["usable"], json!(true));
}

#[test]
fn a_mistake_in_the_front_matter_hides_no_skill_and_is_named_once() {
    let server = server(1);
    let home = home_with(&server);
    for (name, front_matter) in [
        ("colon", "name: colon\ndescription: use this: when asked"),
        ("hint", "name: hint\ndescription: Takes two.\nargument-hint: [a] [b]"),
        ("upper", "name: Upper Case\ndescription: Has capitals."),
        ("nameless", "description: Has no name."),
        ("unclear", "name: unclear\ndescription: d\nmetadata: {myclaw: {requires: 7}}"),
    ] {
        let path = format!(".myclaw/skills/{name}/SKILL.md");
        home.write(&path, format!("---\n{front_matter}\n---\nText.\n"));
    }
    let utf16: Vec<u8> = [0xFF, 0xFE]
        .into_iter()
        .chain(
            "---\nname: wide\ndescription: Is wide.\n---\n"
                .encode_utf16()
                .flat_map(u16::to_le_bytes),
        )
        .collect();
    let wide = home.write(".myclaw/skills/wide/SKILL.md", "");
    fs::write(wide, utf16).expect("a file");
    run(&home, &["run", "hello"]).assert_code(0);
    let prompt = system_prompt(&server);
    for expected in ["use this: when asked", "Takes two.", "upper-case", "nameless", "Is wide."] {
        assert!(prompt.contains(expected), "{expected}: {prompt}");
    }
    assert!(!prompt.contains("unclear"), "a skill that nobody knows the needs of: {prompt}");
    let check = run(&home, &["skills", "check"]);
    check.assert_code(1);
    let stdout = check.stdout();
    for (name, words) in [
        ("colon", "read line by line"),
        ("hint", "read line by line"),
        ("upper", "`upper-case` is taken"),
        ("nameless", "`nameless` is taken"),
        ("unclear", "`metadata.myclaw.requires` says, which cannot be read"),
    ] {
        let lines: Vec<&str> =
            stdout.lines().filter(|line| line.contains(&format!("/{name}/SKILL.md"))).collect();
        assert!(lines.len() == 1 && lines[0].contains(words), "{name}: {stdout}");
    }
}

#[test]
fn check_reports_what_cannot_be_used_and_show_prints_a_skill() {
    let home = TempHome::new();
    let good = home.write(".myclaw/skills/good/SKILL.md", skill("good", "Is good.", ""));
    run(&home, &["skills", "check"]).assert_code(0);
    let broken = home.write(".myclaw/skills/broken/SKILL.md", "no front matter");

    let check = run(&home, &["skills", "check"]);
    check.assert_code(1);
    let line = format!("{}: it does not begin with front matter", broken.display());
    assert!(check.stdout().starts_with(&line), "{}", check.stdout());

    let show = run(&home, &["skills", "show", "good"]);
    show.assert_code(0);
    assert!(
        show.stdout().starts_with(&format!("file    {}\n", good.display())),
        "{}",
        show.stdout()
    );
    assert!(show.stdout().ends_with("\nStep one of good.\n"), "{}", show.stdout());
    let unknown = run(&home, &["skills", "show", "goood"]);
    unknown.assert_code(2);
    assert!(unknown.stderr().contains("did you mean `good`?"), "{}", unknown.stderr());
}

#[test]
fn skills_out_of_reach_of_the_read_tool_are_not_listed() {
    let server = server(1);
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["tools"] = json!({"fs": {"workspaceOnly": true}});
    home.write_config(&config);
    home.write(".myclaw/skills/far/SKILL.md", skill("far", "Is far away.", ""));
    home.write_in_workspace("skills/near/SKILL.md", skill("near", "Is near.", ""));

    run(&home, &["run", "hello"]).assert_code(0);

    let prompt = system_prompt(&server);
    assert!(prompt.contains("- near: ") && !prompt.contains("- far: "), "{prompt}");
}

#[test]
fn the_chat_lists_skills_and_asks_the_agent_to_use_one() {
    let server = server(1);
    let home = home_with(&server);
    let path = home.write(".claude/skills/notes/SKILL.md", skill("notes", "Writes notes.", ""));

    let input = "/skill\n/skill nots\n/skill notes about the meeting\n";
    let output = RunningChild::run_with_input(&mut myclaw(&home, &["chat"]), input);

    output.assert_code(0);
    let stdout = output.stdout();
    assert!(stdout.starts_with("notes  Writes notes.\n"), "{stdout}");
    assert!(stdout.contains("there is no skill `nots`; did you mean `notes`?"), "{stdout}");
    server.assert_finished();
    let said = server.requests()[0].messages()[0]["content"].to_string();
    let request = format!(
        "Use the skill notes: read {} and follow it.\\n\\nabout the meeting",
        path.display()
    );
    assert!(said.contains(&request), "{said}");
}

#[test]
fn a_program_lists_skills_and_asks_the_agent_to_use_one() {
    let server = server(1);
    let home = home_with(&server);
    let path = home.write(".claude/skills/notes/SKILL.md", skill("notes", "Writes notes.", ""));

    let input = [
        json!({"id": 1, "type": "list_skills"}),
        json!({"id": 2, "type": "prompt", "message": "", "skill": "nots"}),
        json!({"id": 3, "type": "prompt", "message": "about the meeting", "skill": "notes"}),
    ];
    let input: String = input.iter().map(|line| format!("{line}\n")).collect();
    let output = RunningChild::run_with_input(&mut myclaw(&home, &["rpc"]), input);

    output.assert_code(0);
    let lines: Vec<Value> =
        output.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reply = |id: u64| lines.iter().find(|line| line["id"] == id).unwrap();
    let notes = json!([{"name": "notes", "description": "Writes notes."}]);
    assert_eq!(reply(1)["data"]["skills"], notes);
    let error = reply(2)["error"].as_str().unwrap();
    assert!(error.contains("there is no skill `nots`; did you mean `notes`?"), "{error}");
    assert_eq!(reply(3)["success"], true);
    server.assert_finished();
    let said = server.requests()[0].messages()[0]["content"].to_string();
    let request = format!("Use the skill notes: read {} and follow it.", path.display());
    assert!(said.contains(&request) && said.contains("about the meeting"), "{said}");
}

#[test]
fn the_prompt_stays_the_same_between_turns_and_follows_the_files() {
    let server = server(3);
    let home = home_with(&server);
    let path =
        home.write_in_workspace("skills/notes/SKILL.md", skill("notes", "Writes notes.", ""));
    run(&home, &["run", "one"]).assert_code(0);
    run(&home, &["run", "two"]).assert_code(0);
    fs::remove_file(path).expect("the skill");
    run(&home, &["run", "three"]).assert_code(0);
    let requests = server.requests();
    assert_eq!(requests[0].json()["system"], requests[1].json()["system"]);
    assert_ne!(requests[1].json()["system"], requests[2].json()["system"]);
}

#[test]
fn system_md_replaces_the_identity_text_unless_it_is_blank() {
    let server = server(2);
    let home = home_with(&server);
    home.write_in_workspace("SYSTEM.md", " \n");
    home.write_in_workspace("AGENTS.md", "Be brief.\n");
    run(&home, &["run", "hello"]).assert_code(0);
    assert!(system_prompt(&server).starts_with("<identity>\nYou are MyClaw, "));

    home.write_in_workspace("SYSTEM.md", "You are a lighthouse.\n");
    let output = run(&home, &["run", "--json", "hello"]);
    output.assert_code(0);
    let request = &server.requests()[1];
    let system = request.json()["system"].to_string();
    let beginning = "<identity>\\nYou are a lighthouse.\\n</identity>\\n\\n<bootstrap-files>";
    assert!(system.contains(beginning) && !system.contains("You are MyClaw"), "{system}");
    let done = output
        .stdout()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .find(|event| event["type"] == "done")
        .expect("a result");
    assert_eq!(
        done["result"]["systemPromptReport"]["files"][0],
        json!({"name": "SYSTEM.md", "chars": 22, "truncated": false, "fileBytes": 22})
    );
}
