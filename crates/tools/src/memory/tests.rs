use std::os::unix::fs::symlink;

use serde_json::Value;

use super::*;
use crate::support::testing::{Workspace, text_of};

const CAR: &str = "The blue car needs winter tyres in October.\n";
const BOILER: &str = "# Boiler\nIt leaks; Mrs Weber repairs it on Tuesday.\n";

fn memory_of(workspace: &Workspace, extra: &[&str]) -> Memory {
    let options = MemoryOptions {
        workspace: workspace.path(""),
        extra: extra.iter().map(|path| workspace.base.join(path)).collect(),
        max_results: 6,
        min_score: 0.1,
    };
    Memory { options, meaning: None, sessions: None }
}

async fn search(workspace: &Workspace, memory: Memory, arguments: Value) -> String {
    workspace.text(&MemorySearchTool(memory), arguments).await
}

#[tokio::test]
async fn the_best_passages_come_with_their_place() {
    let workspace = Workspace::new(&[
        ("MEMORY.md", CAR),
        ("memory/home/2026-03-01.md", BOILER),
        ("memory/.trash/old.md", BOILER),
        ("memory/boiler.txt", BOILER),
        ("notes.md", BOILER),
    ]);
    let tool = MemorySearchTool(memory_of(&workspace, &[]));
    let output = workspace.call(&tool, json!({"query": "leaking boiler?"})).await.unwrap();
    let details = output.details.clone().unwrap();
    assert_eq!(details["by"], "words");
    assert_eq!(details["results"].as_array().unwrap().len(), 1);
    let score = details["results"][0]["score"].as_f64().unwrap();
    assert_eq!(
        text_of(&output),
        format!("memory/home/2026-03-01.md:1-2 (score {score:.2})\n{BOILER}")
    );
    let by_day = search(&workspace, memory_of(&workspace, &[]), json!({"query": "2026-03-01"}));
    assert!(by_day.await.starts_with("memory/home/2026-03-01.md:1-2"));
    let nothing = search(&workspace, memory_of(&workspace, &[]), json!({"query": "giraffe"}));
    assert_eq!(nothing.await, "none of 2 passages fits; try other words");
}

#[tokio::test]
async fn a_call_may_ask_for_more_or_better_passages() {
    let files: Vec<(String, String)> =
        (0..9).map(|day| (format!("memory/{day}.md"), format!("boiler day{day}\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let workspace = Workspace::new(&files);
    let all = |arguments: Value| search(&workspace, memory_of(&workspace, &[]), arguments);
    let six = all(json!({"query": "boiler"})).await;
    assert!(six.ends_with("[6 of 9 passages shown; maxResults (--limit) shows more]"), "{six}");
    let nine = all(json!({"query": "boiler", "max_results": "50"})).await;
    assert_eq!(nine.matches("(score").count(), 9, "{nine}");
    let none = all(json!({"query": "boiler", "minScore": 1})).await;
    assert_eq!(none, "none of 9 passages fits; try other words");
    let blank = workspace
        .call(&MemorySearchTool(memory_of(&workspace, &[])), json!({"query": "?"}))
        .await
        .unwrap_err();
    assert!(blank.to_string().contains("has no words"), "{blank}");
}

#[tokio::test]
async fn what_is_outside_is_neither_found_nor_read() {
    let workspace = Workspace::new(&[
        ("memory/a.md", CAR),
        ("secret.md", "boiler key\n"),
        ("memory/plain.txt", "boiler"),
        ("../outside/b.md", "boiler code\n"),
    ]);
    symlink("../secret.md", workspace.path("memory/link.md")).unwrap();
    symlink(workspace.base.join("outside"), workspace.path("memory/outside")).unwrap();
    symlink("secret.md", workspace.path("MEMORY.md")).unwrap();
    let found = search(&workspace, memory_of(&workspace, &[]), json!({"query": "boiler"})).await;
    let link = workspace.path("secret.md");
    assert_eq!(
        found,
        format!(
            "none of 1 passages fits; try other words\n[MEMORY.md is a link to {} and was not read; the user can name that \
             in memorySearch.extraPaths]\n[memory/link.md is a link and not searched]",
            link.display()
        )
    );
    let get = MemoryGetTool(memory_of(&workspace, &[]).options);
    for path in [
        "MEMORY.md",
        "secret.md",
        "memory/link.md",
        "memory/outside/b.md",
        "memory/../secret.md",
        "memory/plain.txt",
        "memory",
        "/etc/passwd",
    ] {
        let error = workspace.call(&get, json!({"path": path})).await.unwrap_err().to_string();
        assert!(error.contains("is not a note"), "{path}: {error}");
    }
    for path in ["memory/b.md", "", "a\0b"] {
        let error = workspace.call(&get, json!({"path": path})).await.unwrap_err().to_string();
        assert!(error.contains("not a path") || error.contains("does not exist"), "{error}");
    }
}

#[tokio::test]
async fn the_owner_may_name_more_places() {
    let workspace =
        Workspace::new(&[("x", ""), ("../outside/deep/b.md", BOILER), ("../c.md", CAR)]);
    let memory = memory_of(&workspace, &["outside", "c.md", "missing"]);
    let found = search(&workspace, memory.clone(), json!({"query": "boiler"})).await;
    let note = workspace.base.join("outside/deep/b.md");
    assert!(found.starts_with(&format!("{}:1-2", note.display())), "{found}");
    assert!(found.contains("missing of memorySearch.extraPaths was not searched"), "{found}");
    let get = MemoryGetTool(memory.options);
    let read = workspace.text(&get, json!({"path": note.display().to_string()})).await;
    assert_eq!(read, BOILER.trim_end());
}

#[tokio::test]
async fn a_note_that_is_too_large_is_named_and_holds_up_nothing() {
    let workspace = Workspace::new(&[("memory/a.md", BOILER)]);
    workspace.write("memory/big.md", "boiler\n".repeat(200_000));
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        workspace.path("memory/pipe.md"),
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    let memory = memory_of(&workspace, &[]);
    let found = search(&workspace, memory.clone(), json!({"query": "boiler"})).await;
    assert!(found.ends_with("[memory/big.md is larger than 1 MiB and not searched]"), "{found}");
    assert_eq!(found.matches("(score").count(), 1, "{found}");
    let get = MemoryGetTool(memory.options);
    let error = workspace.call(&get, json!({"path": "memory/big.md"})).await.unwrap_err();
    assert!(error.to_string().contains("larger than 1 MiB"), "{error}");
}

#[tokio::test]
async fn lines_of_a_note_are_read() {
    let workspace =
        Workspace::new(&[("MEMORY.md", "one\ntwo\nthree\nfour\n"), ("memory/e.md", "")]);
    let get = MemoryGetTool(memory_of(&workspace, &[]).options);
    let text = |arguments: Value| workspace.text(&get, arguments);
    assert_eq!(text(json!({"path": "MEMORY.md"})).await, "one\ntwo\nthree\nfour");
    let some = json!({"path": "MEMORY.md", "from": 2, "lines": 2});
    assert_eq!(text(some).await, "two\nthree\n[lines 2 to 3 of 4]");
    assert_eq!(text(json!({"path": "memory/e.md"})).await, "(empty note)");
    let error = workspace.call(&get, json!({"path": "MEMORY.md", "from": 5})).await.unwrap_err();
    assert!(error.to_string().contains("MEMORY.md has 4 lines, so there is no 5"), "{error}");
}

#[tokio::test]
async fn meaning_finds_what_words_do_not() {
    struct Always(Result<Vec<Compared>, String>);
    impl Meaning for Always {
        fn compare(
            &self,
            _: &str,
            _: &[&str],
            _: &CancellationToken,
        ) -> Result<Vec<Compared>, String> {
            self.0.clone()
        }
    }
    let workspace = Workspace::new(&[("MEMORY.md", CAR), ("memory/b.md", BOILER)]);
    let with =
        |answer| Memory { meaning: Some(Arc::new(Always(answer))), ..memory_of(&workspace, &[]) };
    let similar = Ok(vec![Compared::Skipped, Compared::Similarity(0.8)]);
    let found = search(&workspace, with(similar), json!({"query": "heating"})).await;
    assert_eq!(
        found,
        format!(
            "memory/b.md:1-2 (score 0.80)\n{BOILER}\n[1 passages were compared by their words alone, because too many are new]"
        )
    );
    let broken =
        search(&workspace, with(Err("no model".to_owned())), json!({"query": "car"})).await;
    assert!(broken.contains("blue car"), "{broken}");
    assert!(broken.ends_with("[searched by words alone: no model]"), "{broken}");
}

#[tokio::test]
async fn passages_of_notes_and_sessions_come_by_turns_and_each_fact_is_one() {
    struct Sessions(Result<(Vec<Recalled>, Option<String>), String>);
    impl Recall for Sessions {
        fn recall(&self, _: &str, _: usize) -> Result<(Vec<Recalled>, Option<String>), String> {
            self.0.clone()
        }
    }
    let facts = "# Facts\n\n- The boiler leaks. <!-- k3f9q; 2026-11-29 -->\n- Likes tea.\n- Boiler: Mrs Weber.\n";
    let workspace = Workspace::new(&[("memory/facts.md", facts)]);
    let with = |answer| Memory {
        sessions: Some(Arc::new(Sessions(answer))),
        ..memory_of(&workspace, &[])
    };
    let said = Recalled {
        place: "session a row r (2026-11-29)".to_owned(),
        text: "user: boiler?".to_owned(),
    };
    let found = search(&workspace, with(Ok((vec![said], None))), json!({"query": "boiler"})).await;
    let places: Vec<&str> =
        found.split("\n\n").map(|entry| entry.lines().next().unwrap()).collect();
    assert_eq!(places.len(), 3, "{found}");
    assert!(
        places[0].starts_with("memory/facts.md:") && places[2].starts_with("memory/facts.md:"),
        "{found}"
    );
    assert_eq!(places[1], "session a row r (2026-11-29)");
    assert!(!found.contains("Likes tea"), "{found}");
    let failed =
        search(&workspace, with(Err("no list".to_owned())), json!({"query": "boiler"})).await;
    assert!(failed.ends_with("[earlier sessions were not searched: no list]"), "{failed}");
    let get = memory_tools(memory_of(&workspace, &[]));
    assert_eq!(get.len(), 1, "with facts alone there is nothing else to read");
}
