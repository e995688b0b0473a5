//! A turn from message to reply, over both wire formats, with whole requests and the whole transcript checked.

use crate::common::{Bench, run_agent};
use myclaw_engine::RunParams;
use myclaw_testkit::{Reply, Step, Stop, WireFormat};
use serde_json::json;

const FORMATS: [WireFormat; 4] = [
    WireFormat::AnthropicMessages,
    WireFormat::OpenAiCompletions,
    WireFormat::OpenAiResponses,
    WireFormat::BedrockConverse,
];

fn echo(format: WireFormat, id: &str, text: &str) -> Reply {
    Reply::new(format).tool_call(id, "echo", json!({"text": text}))
}

#[tokio::test]
async fn a_plain_reply_is_streamed_stored_and_returned() {
    for format in FORMATS {
        let bench = Bench::new(format, Reply::new(format).text("Hello there.").usage(10, 5)).await;

        let result = bench.run("hi").await.unwrap();

        assert_eq!(
            (result.reply.as_str(), result.iterations, result.max_iterations_reached),
            ("Hello there.", 1, false)
        );
        assert_eq!(
            (result.usage.input, result.usage.output, result.usage.total_tokens),
            (10, 5, 15)
        );
        assert_eq!(result.usage, result.last_call_usage);
        assert_eq!(
            bench.event_names(),
            ["run_start", "llm_start", "llm_stream", "llm_usage", "llm_end", "done", "run_end"]
        );
        let rows = bench.rows();
        assert_eq!(rows.len(), 2);
        assert_eq!((&rows[0]["role"], &rows[0]["content"]), (&json!("user"), &json!("hi")));
        assert_eq!(
            (&rows[1]["role"], &rows[1]["content"]),
            (&json!("assistant"), &json!("Hello there."))
        );
        let mut block = json!({"type": "text", "text": "Hello there."});
        if format == WireFormat::OpenAiResponses {
            block["textSignature"] = json!(r#"{"id":"msg_00000000"}"#);
        }
        assert_eq!(rows[1]["meta"]["contentBlocks"], json!([block]));
        bench.server.assert_finished();
    }
}

#[tokio::test]
async fn tools_run_and_their_results_go_back_until_the_model_answers() {
    for format in FORMATS {
        let script = [
            Reply::new(format)
                .text("Looking.")
                .tool_call("call_a", "echo", json!({"text": "one"}))
                .tool_call("call_b", "echo", json!({"text": "two"})),
            echo(format, "call_c", "three"),
            Reply::new(format).text("Done."),
        ];
        let bench = Bench::new(format, script).await;

        let result = bench.run("go").await.unwrap();

        assert_eq!((result.reply.as_str(), result.iterations), ("Done.", 3));
        assert_eq!((result.usage.input, result.last_call_usage.input), (300, 100));
        let rows = bench.rows();
        let shape: Vec<_> = rows
            .iter()
            .map(|row| (row["role"].as_str().unwrap(), row["content"].as_str().unwrap()))
            .collect();
        assert_eq!(
            shape,
            [
                ("user", "go"),
                ("assistant", "Looking."),
                ("tool", "echo: one"),
                ("tool", "echo: two"),
                ("assistant", ""),
                ("tool", "echo: three"),
                ("assistant", "Done."),
            ]
        );
        assert_eq!(
            (&rows[2]["toolCallId"], &rows[3]["toolCallId"]),
            (&json!("call_a"), &json!("call_b"))
        );
        assert_eq!(
            rows[2]["meta"],
            json!({"toolName": "echo", "isError": false, "details": {"shown": 3}})
        );
        assert!(
            !bench.server.last_request().body_text().contains("shown"),
            "details are never sent"
        );
        assert_eq!(bench.server.connections(), 1, "one connection serves a whole run");
        let ends = bench.events_named("tool_end");
        assert_eq!(
            ends.iter().map(|end| end["toolCallId"].as_str().unwrap()).collect::<Vec<_>>(),
            ["call_a", "call_b", "call_c"]
        );
        assert_eq!(
            bench
                .events_named("llm_start")
                .iter()
                .map(|start| start["iteration"].clone())
                .collect::<Vec<_>>(),
            [0, 1, 2]
        );
    }
}

#[tokio::test]
async fn without_a_callback_the_result_and_the_transcript_are_the_same() {
    for format in FORMATS {
        let script = [echo(format, "call_a", "one"), Reply::new(format).text("Done.")];
        let streamed = Bench::new(format, script.clone()).await;
        let buffered = Bench::new(format, script).await;

        let with_events = streamed.run("go").await.unwrap();
        let without =
            run_agent(RunParams { on_event: None, ..buffered.params("go") }).await.unwrap();

        assert_eq!(with_events, without);
        let without_ids = |bench: &Bench| {
            let mut rows = bench.rows();
            rows.iter_mut().for_each(|row| {
                row.as_object_mut().unwrap().remove("id");
                row.as_object_mut().unwrap().remove("ts");
            });
            rows
        };
        assert_eq!(without_ids(&streamed), without_ids(&buffered));
    }
}

#[tokio::test]
async fn the_next_turn_continues_and_its_prefix_has_the_same_bytes() {
    for format in FORMATS {
        let script = [
            echo(format, "call_a", "one"),
            Reply::new(format).text("First."),
            Reply::new(format).text("Second."),
        ];
        let bench = Bench::new(format, script).await;

        bench.run("go").await.unwrap();
        bench.run("and now?").await.unwrap();

        let requests = bench.server.requests();
        let (before, after) = (requests[1].json(), requests[2].json());
        assert_eq!(before["system"], after["system"]);
        assert_eq!(before["tools"], after["tools"]);
        let (before, after) = (requests[1].messages(), requests[2].messages());
        assert_eq!(after.len(), before.len() + 2);
        for (earlier, later) in before.iter().zip(after) {
            assert_eq!(without_cache_marks(earlier), without_cache_marks(later));
        }
    }
}

/// Cache marks move with the newest message; they are no part of what a provider caches.
fn without_cache_marks(message: &serde_json::Value) -> String {
    message.to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

#[tokio::test]
async fn the_cap_ends_the_run_with_a_summary_and_a_log_that_goes_on() {
    let format = WireFormat::AnthropicMessages;
    let script = [
        Reply::anthropic().text("one").tool_call("call_a", "echo", json!({"text": "a"})),
        Reply::anthropic().text("two").tool_call("call_b", "echo", json!({"text": "b"})),
        Reply::anthropic().text("A and b are done."),
        Reply::anthropic().text("Resumed."),
    ];
    let mut bench = Bench::new(format, script).await;
    bench.config.agent.max_iterations = serde_json::from_value(json!(2)).unwrap();

    let capped = bench.run("go").await.unwrap();
    assert_eq!(
        (capped.reply.as_str(), capped.iterations, capped.max_iterations_reached),
        ("A and b are done.", 2, true)
    );
    assert!(bench.event_names().ends_with(&["done".to_owned(), "run_end".to_owned()]));
    let asked = bench.server.last_request().body_text().to_owned();
    assert!(asked.contains("the number of model calls for one message is used up"), "{asked}");

    assert_eq!(bench.run("go on").await.unwrap().reply, "Resumed.");
    bench.server.assert_finished();
}

#[tokio::test]
async fn a_faulty_call_gets_a_result_that_says_what_to_do() {
    for format in FORMATS {
        let script = [
            Reply::new(format)
                .tool_call("call_a", "ecko", json!({}))
                .tool_call("call_b", "echo", json!({"text": {"deep": 1}}))
                .tool_call("call_c", "echo", json!({}))
                .tool_call("call_d", "echo", json!({"text": "fail"}))
                .tool_call_with_raw_arguments("call_e", "echo", r#"{"text": "cut"#)
                .tool_call("call_f", "echo", json!({"text": 7})),
            Reply::new(format).text("Done."),
        ];
        let bench = Bench::new(format, script).await;

        bench.run("go").await.unwrap();

        let results: Vec<(String, bool)> = bench
            .rows()
            .iter()
            .filter(|row| row["role"] == "tool")
            .map(|row| {
                (
                    row["content"].as_str().unwrap().to_owned(),
                    row["meta"]["isError"].as_bool().unwrap(),
                )
            })
            .collect();
        let expected = [
            ("Unknown tool: ecko. The tools are: echo.", true),
            (
                "Not run: the arguments of echo do not fit.\n- `text` must be a string, not {\"deep\":1}\nSend the call again, corrected.",
                true,
            ),
            (
                "Not run: the arguments of echo do not fit.\n- `text` is missing\nSend the call again, corrected.",
                true,
            ),
            ("Tool execution error: it is broken; try another text", true),
            (
                "Not run: the arguments of echo were not a JSON object. They began: {\"text\": \"cut\nSend the call again with valid JSON.",
                true,
            ),
            ("echo: 7", false),
        ];
        assert_eq!(results, expected.map(|(text, is_error)| (text.to_owned(), is_error)));
        bench.server.assert_finished();
    }
}

#[tokio::test]
async fn a_long_result_is_cut_by_characters_with_a_marker() {
    let bench = Bench::new(
        WireFormat::AnthropicMessages,
        [echo(WireFormat::AnthropicMessages, "call_a", "long"), Reply::anthropic().text("ok")],
    )
    .await;

    bench.run("go").await.unwrap();

    let content = bench.rows()[2]["content"].as_str().unwrap().to_owned();
    assert_eq!(content, format!("{}\n[truncated 10000 chars]", "ä".repeat(50_000)));
}

#[tokio::test]
async fn the_results_of_one_message_have_a_length_together() {
    let text = |number: usize| format!("{number}{}", "ä".repeat(5_992));
    let long = (10..22).fold(Reply::anthropic(), |reply, number| {
        reply.tool_call(format!("call_{number}"), "echo", json!({"text": text(number)}))
    });
    let again = echo(WireFormat::AnthropicMessages, "call_z", "long");
    let script = [long, again, Reply::anthropic().text("ok")];
    let mut bench = Bench::new(WireFormat::AnthropicMessages, script).await;
    bench.config.agent.max_tool_result_chars = 5_000;

    bench.run("go").await.unwrap();

    let rows = bench.rows();
    let content = |row: usize| rows[row]["content"].as_str().unwrap().to_owned();
    // `echo: 10` has 8 characters.
    let beginning =
        |row: usize, chars: usize| format!("echo: {}{}", row + 8, "ä".repeat(chars - 8));
    // All results of a message have room for eight of full length.
    for row in 2..10 {
        assert_eq!(content(row), format!("{}\n[truncated 1000 chars]", beginning(row, 5_000)));
    }
    let hint = "the results of one message may have 40000 together. Make fewer calls at once, and read this one again \
                in a message of its own]";
    for row in 10..14 {
        // With the 22 characters of the note about the first 1,000.
        let expected = format!("{}\n[truncated 3022 chars: {hint}", beginning(row, 2_000));
        assert_eq!(content(row), expected);
    }
    // The next message has room of its own.
    assert_eq!(content(15), format!("{}\n[truncated 55000 chars]", "ä".repeat(5_000)));
}

#[tokio::test]
async fn a_call_in_a_message_cut_by_the_output_limit_is_not_run() {
    for format in FORMATS {
        let script = [
            echo(format, "call_a", "one").stop(Stop::Length),
            Reply::new(format).text("Smaller then."),
        ];
        let bench = Bench::new(format, script).await;

        let result = bench.run("go").await.unwrap();

        assert_eq!(result.reply, "Smaller then.");
        let rows = bench.rows();
        assert!(
            rows[2]["content"].as_str().unwrap().starts_with("Not run: the message was cut off"),
            "{}",
            rows[2]
        );
        assert!(!bench.event_names().contains(&"tool_start".to_owned()));
    }
}

#[tokio::test]
async fn a_stream_that_breaks_after_visible_text_is_kept_and_reported_not_repeated() {
    for format in FORMATS {
        let whole = Reply::new(format)
            .text("This is the beginning of a long answer.")
            .stream_body("test-model")
            .len();
        let broken = Step::from(Reply::new(format).text("This is the beginning of a long answer."))
            .cut_after(whole * 2 / 3);
        let bench = Bench::new(format, broken).await;

        let error = bench.run("go").await.unwrap_err();

        assert_eq!(error.class(), "network");
        assert_eq!(bench.server.requests().len(), 1, "nothing was sent again");
        let rows = bench.rows();
        assert_eq!(rows[1]["meta"]["stopReason"], "error");
        assert!(rows[1]["content"].as_str().unwrap().starts_with("This is"), "{}", rows[1]);
        assert!(!bench.event_names().contains(&"done".to_owned()));

        bench.server.push(Reply::new(format).text("Again, whole."));
        assert_eq!(bench.run("once more").await.unwrap().reply, "Again, whole.");
    }
}

#[tokio::test]
async fn a_model_that_repeats_itself_gets_a_remark() {
    let format = WireFormat::AnthropicMessages;
    let mut script: Vec<Reply> =
        (0..4).map(|number| echo(format, &format!("call_{number}"), "same")).collect();
    script.push(Reply::anthropic().text("I stop."));
    let bench = Bench::new(format, script).await;

    bench.run("go").await.unwrap();

    let reported: Vec<bool> = bench
        .rows()
        .iter()
        .filter(|row| row["role"] == "tool")
        .map(|row| row["content"].as_str().unwrap().contains("Do not repeat it"))
        .collect();
    assert_eq!(reported, [false, false, true, true]);
    assert!(bench.server.last_request().body_text().contains("same result 4 times"));
}
