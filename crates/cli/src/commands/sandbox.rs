//! `myclaw sandbox`: what the operating system enforces in a session, and a test of it.

use std::path::PathBuf;

use myclaw_agent::{
    confinement::SandboxReport,
    workspace::{Party, Quota, WorkspaceUse},
};
use myclaw_config::SandboxMode;
use myclaw_sandbox::{Confinement, Level, Limits, Network, WorkspaceAccess};
use serde_json::{Value, json};

use crate::args::{SandboxArgs, SandboxCommand};
use myclaw_front::args::SessionArgs;
use myclaw_front::exit::CliError;
use myclaw_front::home::session_config;
use myclaw_front::print::{Printer, columns};

/// Runs one of the commands.
pub(crate) fn run(args: &SandboxArgs) -> Result<(), CliError> {
    match &args.command {
        SandboxCommand::Explain { session, json } => explain(session, *json),
        SandboxCommand::Test { session } => test(session),
    }
}

fn explain(args: &SessionArgs, as_json: bool) -> Result<(), CliError> {
    let session = session_config(args)?;
    let report = session.sandbox_report()?;
    let mut printer = Printer::stdout();
    if as_json {
        let mut confinement = serde_json::to_value(&report.confinement)
            .map_err(|error| CliError::failure(error.to_string()))?;
        if let Network::Proxy { .. } = report.confinement.network {
            // The socket is known only once the proxy runs.
            confinement["network"] = json!({ "allowlist": report.allow_hosts });
        }
        printer.json(&json!({
            "session": session.session_key,
            "mode": report.mode.as_str(),
            "main": report.is_main,
            "sandboxed": report.is_sandboxed,
            "available": report.obstacle.is_none(),
            "obstacle": report.obstacle,
            "party": party(&report),
            "agentWorkspace": { "path": report.agent_workspace, "access": report.agent_workspace_access },
            "quota": report.workspace_use.as_ref().map(quota_as_json),
            "prompt": { "files": report.prompt, "notes": report.notes },
            "confinement": confinement,
        }))?;
    } else {
        let mut rows = vec![
            row("session", session.session_key.to_string()),
            row("messages of", described_party(&report).to_owned()),
            row("sandboxed", scope(&report)),
        ];
        rows.extend(described(&report));
        if !report.is_sandboxed {
            rows.push(row("state", session.state_directory_report()?.to_string()));
        }
        printer.safe_lines(columns(&rows))?;
    }
    printer.finish()?;
    match report.obstacle {
        Some(_) if report.is_sandboxed => Err(CliError::failure_of_class(
            "sandbox",
            "the session cannot run, because this machine cannot enforce its sandbox",
        )),
        _ => Ok(()),
    }
}

fn row(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

fn party(report: &SandboxReport) -> &'static str {
    match report.party {
        Party::Owner => "owner",
        Party::Others => "others",
    }
}

fn described_party(report: &SandboxReport) -> &'static str {
    match report.party {
        Party::Owner => "the owner",
        Party::Others => {
            "others, so it has a workspace of its own unless `workspaceAccess` is \"rw\""
        }
    }
}

fn quota_as_json((used, quota): &(WorkspaceUse, Quota)) -> Value {
    json!({
        "bytes": used.bytes, "maxBytes": quota.bytes,
        "files": used.files, "maxFiles": quota.files, "hasMore": used.has_more,
    })
}

fn access_in_words(access: WorkspaceAccess) -> &'static str {
    match access {
        WorkspaceAccess::None => "closed",
        WorkspaceAccess::Ro => "read only",
        WorkspaceAccess::Rw => "may be changed",
    }
}

fn scope(report: &SandboxReport) -> String {
    let kind = match report {
        SandboxReport { is_main: true, .. } => "the main session",
        SandboxReport { is_open_project: true, .. } => "the session of a project",
        _ => "not the main session",
    };
    let answer = if report.is_sandboxed { "yes" } else { "no" };
    match report.mode {
        SandboxMode::NonMain => format!("{answer}: it is {kind}, and the mode is non-main"),
        mode => format!("{answer}: the mode is {}", mode.as_str()),
    }
}

/// What is enforced in sandboxed sessions.
fn described(report: &SandboxReport) -> Vec<Vec<String>> {
    let Confinement {
        level,
        workspace,
        access,
        protected,
        read_only,
        read_write,
        network,
        limits,
        ..
    } = &report.confinement;
    let availability = report.obstacle.clone().unwrap_or_else(|| "available here".to_owned());
    let network = match network {
        Network::None => "none".to_owned(),
        Network::Open => "open".to_owned(),
        Network::Proxy { .. } => format!("only {}", report.allow_hosts.join(", ")),
    };
    let level = match level {
        Level::Limits => "limits".to_owned(),
        Level::Landlock => "landlock".to_owned(),
        Level::Bubblewrap => "bubblewrap".to_owned(),
        Level::Container { engine, image } => {
            format!("{} with the image {image}", engine.program())
        }
        other => format!("{other:?}"),
    };
    let agents = &report.agent_workspace;
    let mut rows = vec![
        row("level", format!("{level}: {availability}")),
        row("workspace", format!("{} ({})", workspace.display(), access_in_words(*access))),
    ];
    if report.party == Party::Others {
        let access = access_in_words(report.agent_workspace_access);
        rows.push(row("agent's workspace", format!("{} ({access})", agents.display())));
    }
    if let Some((used, quota)) = &report.workspace_use {
        let (megabytes, more) =
            (used.bytes.div_ceil(1 << 20), if used.has_more { "+" } else { "" });
        let used = format!("{megabytes} MB in {}{more} files", used.files);
        rows.push(row("quota", format!("{quota}; it has {used}")));
    }
    if !protected.is_empty() {
        rows.push(row("protected", paths(protected)));
    }
    rows.extend([
        row("read only", paths(read_only)),
        row("read and write", paths(read_write)),
        row("network", network),
        row("limits", described_limits(limits)),
        row("prompt", described_prompt(report)),
    ]);
    rows
}

/// The files that the prompt is made of.
fn described_prompt(report: &SandboxReport) -> String {
    let names: Vec<_> =
        report.prompt.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    let mut text = format!("{} of {}", names.join(", "), report.agent_workspace.display());
    if let Some(notes) = &report.notes {
        text.push_str(&format!("; as data: {}", notes.display()));
    }
    text
}

fn paths(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

fn described_limits(limits: &Limits) -> String {
    const MEGABYTE: u64 = 1 << 20;
    let Limits { memory, processes, file_size, open_files, cpu_seconds } = limits;
    let named = [
        memory.map(|bytes| format!("{} MB of memory for each process", bytes / MEGABYTE)),
        processes.map(|count| format!("{count} processes")),
        file_size.map(|bytes| format!("{} MB for each file", bytes / MEGABYTE)),
        open_files.map(|count| format!("{count} open files for each process")),
        cpu_seconds.map(|seconds| format!("{seconds} s of processor time for each process")),
    ];
    let named: Vec<String> = named.into_iter().flatten().collect();
    if named.is_empty() { "none".to_owned() } else { named.join(", ") }
}

#[cfg(target_os = "linux")]
fn test(args: &SessionArgs) -> Result<(), CliError> {
    use myclaw_sandbox::escapes::Verdict;

    let level = session_config(args)?.sandbox_report()?.confinement.level;
    if matches!(level, Level::Container { .. }) {
        return Err(CliError::failure(
            "the attempts cannot be made in a container, whose image lacks what they aim at; test the levels landlock and \
             bubblewrap",
        ));
    }
    let rows = myclaw_agent::confinement::try_escapes(level)?;
    let mut printer = Printer::stdout();
    printer.safe_lines(rows.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict() == verdict).count();
    let escaped: Vec<&str> =
        rows.iter().filter(|row| row.verdict() == Verdict::Escaped).map(|row| row.name).collect();
    printer.line(format_args!(
        "{} held, {} not possible here, {} known gaps, {} unknown, {} escaped",
        count(Verdict::Held),
        count(Verdict::NotPossible),
        count(Verdict::KnownGap),
        count(Verdict::Unknown),
        escaped.len()
    ))?;
    printer.finish()?;
    if !escaped.is_empty() {
        return Err(CliError::failure_of_class(
            "sandbox",
            format!(
                "the sandbox did not stop: {}; set `agents.defaults.sandbox.confinement.level` to another level",
                escaped.join(", ")
            ),
        ));
    }
    if count(Verdict::Unknown) > 0 {
        return Err(CliError::failure_of_class(
            "sandbox",
            "some attempts could not be made; the lines above say why",
        ));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn test(_: &SessionArgs) -> Result<(), CliError> {
    Err(CliError::failure("the attempts need Linux; on this system only containers are available"))
}
