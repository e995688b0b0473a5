use std::path::Path;

use myclaw_backup::Part;

use super::part_of;

#[test]
fn each_file_of_the_state_directory_has_a_part() {
    for (path, part) in [
        (".env", Part::Key),
        (".env.bak", Part::Key),
        ("agents/main/agent/auth-profiles.json", Part::Key),
        ("agents/main/agent/auth-profiles.json.lock", Part::Skipped),
        ("approvals.json", Part::Other),
        ("approvals.json.lock", Part::Skipped),
        ("gateway", Part::Other),
        ("gateway/gateway.sqlite", Part::Database),
        ("gateway/gateway.sqlite-wal", Part::Skipped),
        ("gateway/matrix-keys.sqlite", Part::Key),
        ("gateway/running.json", Part::Skipped),
        ("gateway/token", Part::Key),
        ("host/host.sqlite", Part::Database),
        ("host/groups/family/notes.lock", Part::Work),
        ("host/data/ipc/family/in.tmp", Part::Work),
        ("host/data/tmp/family/x", Part::Skipped),
        ("logs/gateway.log", Part::Skipped),
        ("mcp/approved.json", Part::Other),
        ("mcp/logins/auth-profiles.json", Part::Key),
        ("mcp/data/github/cache.sqlite", Part::Work),
        ("myclaw.json", Part::Other),
        ("myclaw.json.bak", Part::Key),
        ("node/paired.json", Part::Key),
        ("sessions/a.jsonl", Part::Log),
        ("sessions/a.inbox", Part::Inbox),
        ("sessions/a.lock", Part::Skipped),
        ("sessions/a.history-0", Part::SideFile),
        ("sessions/a.files", Part::Other),
        ("sessions/a.files/out.txt", Part::SideFile),
        ("sessions/sessions.json", Part::Other),
        ("workspace/Cargo.lock", Part::Work),
        ("workspace-ops/.env", Part::Work),
        ("workspaces/telegram/x.sqlite", Part::Work),
    ] {
        assert_eq!(part_of(Path::new(path)), part, "{path}");
    }
}
