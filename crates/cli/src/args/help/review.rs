//! Help of `myclaw review`.

pub(in crate::args) const REVIEW: &str = "\
Review the changes of the working tree, of a branch or of a pull request, and print findings with file and line.

The program collects the changes with git, or with gh for a pull request; the agent reads files and does nothing else (mode \
read-only). No session is kept unless you name one. With --json the findings are one JSON object whose form docs/use/pipelines.md \
describes; an answer in another form is exit code 9.";

pub(in crate::args) const REVIEW_EXAMPLES: &str = "\
Examples:
  myclaw review                                 what git diff HEAD shows, and new files
  myclaw review --branch parser \"above all the error paths\"
  myclaw review --pr 17 --json | jq -e '.findings | all(.severity != \"high\")'
  myclaw review --branch HEAD --json --max-cost 0.50    in continuous integration";
