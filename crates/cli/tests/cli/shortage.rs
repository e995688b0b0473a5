//! A system that allows no further thread.

use myclaw_testkit::{Reply, RunningChild};

use crate::{myclaw, serve};

#[test]
fn no_further_thread_is_an_error_with_advice() {
    for arguments in [["run", "hello"].as_slice(), &["gateway"], &["rpc"], &["acp"], &["doctor"]] {
        let (_server, home) = serve(Reply::anthropic().text("Hi."));
        let mut command = home.without_further_threads(&myclaw(&home, arguments));
        let output = RunningChild::run(&mut command);
        let stderr = output.stderr();
        assert_ne!(output.code(), Some(0), "{arguments:?}: {stderr}");
        assert!(stderr.contains("ulimit -u"), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("defect"), "{arguments:?}: {stderr}");
    }
}
