use std::path::Path;

use myclaw_backup::FileRole;

use super::part_of;

#[test]
fn each_file_of_the_state_directory_has_a_part() {
    for (path, part) in [
        (".env", FileRole::Key),
        (".env.bak", FileRole::Key),
        ("agents/main/agent/auth-profiles.json", FileRole::Key),
        ("agents/main/agent/auth-profiles.json.lock", FileRole::Skipped),
        ("approvals.json", FileRole::Other),
        ("approvals.json.lock", FileRole::Skipped),
        ("gateway", FileRole::Other),
        ("gateway/gateway.sqlite", FileRole::Database),
        ("gateway/gateway.sqlite-wal", FileRole::Skipped),
        ("gateway/matrix-keys.sqlite", FileRole::Key),
        ("gateway/running.json", FileRole::Skipped),
        ("gateway/token", FileRole::Key),
        ("host/host.sqlite", FileRole::Database),
        ("host/groups/family/notes.lock", FileRole::Work),
        ("host/data/ipc/family/in.tmp", FileRole::Work),
        ("host/data/tmp/family/x", FileRole::Skipped),
        ("logs/gateway.log", FileRole::Skipped),
        ("mcp/approved.json", FileRole::Other),
        ("mcp/logins/auth-profiles.json", FileRole::Key),
        ("mcp/data/github/cache.sqlite", FileRole::Work),
        ("myclaw.json", FileRole::Other),
        ("myclaw.json.bak", FileRole::Key),
        ("node/paired.json", FileRole::Key),
        ("sessions/a.jsonl", FileRole::Log),
        ("sessions/a.inbox", FileRole::Inbox),
        ("sessions/a.lock", FileRole::Skipped),
        ("sessions/a.history-0", FileRole::SideFile),
        ("sessions/a.files", FileRole::Other),
        ("sessions/a.files/out.txt", FileRole::SideFile),
        ("sessions/sessions.json", FileRole::Other),
        ("workspace/Cargo.lock", FileRole::Work),
        ("workspace-ops/.env", FileRole::Work),
        ("workspaces/telegram/x.sqlite", FileRole::Work),
    ] {
        assert_eq!(part_of(Path::new(path)), part, "{path}");
    }
}
