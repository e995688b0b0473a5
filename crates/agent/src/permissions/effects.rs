//! The verdict on what a call does outside of its tool.

use myclaw_engine::{CallEffect, CommandLine};
use myclaw_files::canonical;
use myclaw_policy::{ExecPolicy, ExecRequest, ExecVerdict, InputVerdict, Refusal, escape};

use super::{Permissions, Verdict, programs, repository};

impl Permissions {
    pub(super) fn judge(&self, exec: &ExecPolicy, tool: &str, effect: &CallEffect) -> Verdict {
        let unread = |denied: &dyn Fn(Refusal) -> String| match exec.check_input() {
            InputVerdict::Allowed => Verdict::Allowed,
            InputVerdict::NeedsApproval(refusal) => Verdict::NeedsApproval(refusal.to_string()),
            InputVerdict::Denied(refusal) => Verdict::Denied(denied(refusal)),
        };
        match effect {
            CallEffect::Run(command) => self.judge_command(exec, command),
            CallEffect::Input(input) => {
                let verdict =
                    unread(&|refusal| format!("nothing may be written to a job: {refusal}"));
                match (verdict, &input.job) {
                    (Verdict::NeedsApproval(reason), Some(job)) => {
                        let command = escape(&job.command);
                        Verdict::NeedsApproval(format!("{reason} (the job runs `{command}`)"))
                    }
                    (verdict, _) => verdict,
                }
            }
            // The programs of another machine cannot be found here, so its commands count as ones that cannot be read.
            CallEffect::RunElsewhere(_) => {
                unread(&|refusal| format!("nothing may be run on another machine: {refusal}"))
            }
            CallEffect::Unknown => unread(&|refusal| {
                format!("it is not known here what the tool {tool} runs: {refusal}")
            }),
            CallEffect::OwnerDecides(reason) => Verdict::NeedsApproval(reason.clone()),
            CallEffect::ChangeConfig => {
                Verdict::NeedsApproval("a change of the config needs an approval".to_owned())
            }
            CallEffect::Touch(target) if !exec.is_open() => match self.starts_programs(target) {
                Some(why) => {
                    let path = target.path.display();
                    Verdict::NeedsApproval(format!(
                        "commands are restricted, and a change of {path} may start a program later: {why}"
                    ))
                }
                None => Verdict::Allowed,
            },
            CallEffect::Touch(_) | CallEffect::Connect(_) | CallEffect::Message(_) => {
                Verdict::Allowed
            }
        }
    }

    fn judge_command(&self, exec: &ExecPolicy, command: &CommandLine) -> Verdict {
        let environment = self.environment_of(command);
        let changed: Vec<&str> = command.environment.keys().map(String::as_str).collect();
        let resolve = |name: &str| programs::resolve(name, &environment, &command.directory);
        let request = ExecRequest {
            command: &command.command,
            directory: &command.directory,
            environment: &environment,
            changed_variables: &changed,
            workspace: &self.directory,
            resolve: &resolve,
            real_path: &|path| canonical(path).ok(),
            repository: &repository::programs,
            inner_repository: &repository::inner_repository,
            start_place: &|path, form| self.written_place(path, form),
        };
        match exec.check(&request) {
            ExecVerdict::Allowed => Verdict::Allowed,
            ExecVerdict::NeedsApproval(refusal) => Verdict::NeedsApproval(refusal.to_string()),
            ExecVerdict::Denied(refusal) => {
                Verdict::Denied(format!("the command may not run: {refusal}"))
            }
        }
    }
}
