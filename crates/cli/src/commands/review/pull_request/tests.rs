use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn a_gh_that_does_not_end_is_ended_at_the_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    let gh = directory.path().join("gh");
    // The first prints nothing, the second has closed its output.
    for script in ["exec sleep 600", "exec >&- 2>&- ; exec sleep 600"] {
        let script = format!("#!/bin/sh\necho $$ > pid\n{script}\n");
        std::fs::write(&gh, script).expect("a program");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&gh, mode).expect("a program");
        let limit = Duration::from_secs(1);
        let failed = fetched(gh.as_os_str(), directory.path(), "17", limit).expect_err("a failure");
        assert_eq!(
            failed.message,
            "gh pr diff 17: it took longer than 1 s; try again, or use --branch"
        );
        let pid = std::fs::read_to_string(directory.path().join("pid")).expect("it began");
        assert!(!Path::new("/proc").join(pid.trim()).exists());
    }
}
