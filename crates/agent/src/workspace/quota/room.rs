//! Calls that a full workspace takes: they remove files, show what there is, or end what runs.

use myclaw_engine::{PreparedCall, TargetAccess, WorkPlace};
use myclaw_policy::{Command, Word, parse};

/// Programs that only remove, look, and end processes, whatever their arguments are.
const PROGRAMS: [&str; 20] = [
    "rm", "rmdir", "unlink", "ls", "du", "df", "pwd", "cd", "stat", "wc", "cat", "head", "tail",
    "echo", "true", "kill", "pkill", "killall", "wait", "sleep",
];
/// How the actions of `find` begin that run programs or write files.
const FIND_ACTIONS: [&str; 4] = ["-exec", "-ok", "-fprint", "-fls"];

/// Whether a call may add files to the workspace: those of tools that work where the workspace is.
pub(super) fn may_add_files(call: &PreparedCall) -> bool {
    let is_about_jobs = call.declaration.place == WorkPlace::ThroughCommands
        && call.subject.commands().count() == 0;
    call.declaration.place != WorkPlace::Here && !call.declaration.is_read_only() && !is_about_jobs
}

/// Whether a call only makes room.
pub(super) fn makes_room(call: &PreparedCall) -> bool {
    let mut commands = call.subject.commands().peekable();
    if commands.peek().is_some() {
        return commands.all(|line| command_makes_room(&line.command));
    }
    let mut targets = call.subject.targets().peekable();
    targets.peek().is_some() && targets.all(|target| target.access == TargetAccess::Delete)
}

/// Whether each program of a command line is one that adds nothing. A line that is not read here counts as one that adds.
pub(super) fn command_makes_room(line: &str) -> bool {
    parse(line).is_ok_and(|script| script.commands.iter().all(adds_nothing))
}

fn adds_nothing(command: &Command) -> bool {
    let (program, arguments) = (command.program(), command.arguments());
    let is_literal = command.words.first().is_some_and(Word::is_literal);
    // Only a literal argument is known. The shell puts no option in the place of this variable.
    let are_known =
        || arguments.iter().all(|word| word.is_literal() || word.text.starts_with("$TMPDIR"));
    let are_options = |signs: &str| {
        let is_option = |word: &Word| {
            word.text
                .strip_prefix('-')
                .is_some_and(|text| text.chars().all(|sign| signs.contains(sign)))
        };
        are_known() && arguments.iter().all(is_option)
    };
    let is_action = |word: &Word| FIND_ACTIONS.iter().any(|action| word.text.starts_with(action));
    is_literal
        && match program {
            "find" => are_known() && !arguments.iter().any(is_action),
            "sort" => are_options("hrnbu"),
            "xargs" => {
                let mut words = arguments
                    .iter()
                    .skip_while(|word| matches!(&*word.text, "-0" | "-r" | "-0r" | "-r0"));
                words
                    .next()
                    .is_some_and(|word| word.is_literal() && PROGRAMS[..3].contains(&&*word.text))
            }
            program => PROGRAMS.contains(&program),
        }
}

#[cfg(test)]
mod tests;
