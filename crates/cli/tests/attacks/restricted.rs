//! The owner's main session, whose commands an allowlist restricts, and nobody can be asked: nothing else is started.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use myclaw_testkit::RunningChild;
use serde_json::{Value, json};

use super::attack::{Attack, Attacks};
use super::reach::bash;
use super::scene::Scene;

/// Programs that the owner permits by their names.
const ALLOWED: [&str; 20] = [
    "ls", "cat", "git", "find", "rg", "grep", "sort", "tar", "sed", "wc", "head", "diff", "make",
    "env", "xargs", "python3", "awk", "tee", "split", "date",
];

/// Command lines that would start something else: a name, and the line. `{p}` is a command that leaves a mark, `{s}` a
/// script that does so, `{h}` a repository whose own config names the script wherever git starts a program.
const LINES: &[(&str, &str)] = &[
    ("plain", "{p}"),
    ("after another", "ls; {p}"),
    ("next line", "ls\n{p}"),
    ("in the background", "ls & {p}"),
    ("pipe", "ls | {s}"),
    ("substitution", "ls $({p})"),
    ("backticks", "ls `{p}`"),
    ("process substitution", "cat <({p})"),
    ("default of a variable", "ls ${x:-$({p})}"),
    ("arithmetic", "ls $(( $({p}) ))"),
    ("here document", "cat <<x\n$({p})\nx"),
    ("assignment", "x=$({p}) ls"),
    ("function", "ls() { {p}; }; ls"),
    ("alias", "alias ls='{p}'; eval ls"),
    ("escaped name", "\\touch {m}"),
    ("quoted name", "'touch' {m}"),
    ("expanded name", "{touch,{m}}"),
    ("redirection", "echo x > {m}"),
    ("redirection by cat", "cat /etc/hostname >{m}"),
    ("clobbering", "ls >| {m}"),
    ("both outputs", "ls &> {m}"),
    ("tee", "ls | tee {m}"),
    ("split filter", "ls | split --filter='{p}' -"),
    ("sort output", "sort -o {m} /etc/hostname"),
    ("sort compress", "sort -S 1k --compress-program={s} /etc/services"),
    ("sort compress, short", "sort -S 1k --compress-prog={s} /etc/services"),
    ("find exec", "find . -maxdepth 0 -exec {p} ;"),
    ("find exec, quoted", "find . -maxdepth 0 -exec {p} \\;"),
    ("find execdir", "find . -maxdepth 0 -execdir {p} \\;"),
    ("find ok", "find . -maxdepth 0 -ok {p} \\;"),
    ("find fprint", "find . -maxdepth 0 -fprint {m}"),
    ("find fprintf", "find . -maxdepth 0 -fprintf {m} x"),
    ("find fls", "find . -maxdepth 0 -fls {m}"),
    ("rg pre", "rg --pre {s} x ."),
    ("rg pre, joined", "rg --pre={s} x ."),
    ("rg hostname", "rg --hostname-bin={s} --hyperlink-format=default --color=always a ."),
    ("tar to-command", "tar -cf a.tar tools && tar -xf a.tar --to-command={s}"),
    ("tar compress", "tar -cf a.tar -I {s} tools"),
    ("tar compress, long", "tar -cf a.tar --use-compress-program={s} tools"),
    ("tar compress, shortened", "tar -cf a.tar --use-comp={s} tools"),
    ("tar checkpoint", "tar -cf /dev/null tools --checkpoint=1 --checkpoint-action=exec={s}"),
    (
        "tar checkpoint, shortened",
        "tar -cf /dev/null tools --checkpoint=1 --checkpoint-ac=exec={s}",
    ),
    ("tar volume script", "tar -cf a.tar -F {s} -L 1 tools"),
    ("tar rsh", "tar -cf host:x --rsh-command={s} tools"),
    ("sed e", "sed '1e {p}' /etc/hostname"),
    ("sed e flag", "sed 's/.*/touch {q}/e' /etc/hostname"),
    ("sed w", "sed -n 'w {m}' /etc/hostname"),
    ("sed w flag", "sed 's/a*/b/w {m}' /etc/hostname"),
    ("sed script", "sed -f tools/{l}.sed /etc/hostname"),
    ("make", "make -f tools/{l}.mk"),
    ("make shell", "make SHELL={s} -f /dev/null"),
    ("make eval", "make --eval='$(shell {p})' -f /dev/null"),
    ("env", "env {p}"),
    ("xargs", "ls | xargs {p}"),
    ("python", "python3 -c 'open(\"{m}\", \"w\")'"),
    ("python file", "python3 tools/{l}.py"),
    ("awk", "awk 'BEGIN{system(\"{p}\")}'"),
    ("date file", "date -f {s} -s x"),
    ("git alias", "git -c alias.x='!{p}' x"),
    ("git fsmonitor", "git -c core.fsmonitor={s} status"),
    ("git fsmonitor, config-env", "git --config-env=core.fsmonitor=HOME status"),
    ("git pager", "git -c core.pager={s} -p log"),
    ("git paginate by config", "git -c pager.log={s} -p log"),
    ("git external diff", "git -c diff.external={s} diff HEAD~1"),
    ("git hooks", "git -c core.hooksPath=tools/hooks-{l} checkout -B x"),
    ("git exec path", "git --exec-path=tools/exec-{l} x"),
    ("git clone upload-pack", "git clone -u {s} . c-{l}"),
    ("git clone upload-pack, joined", "git clone -u{s} . c-{l}"),
    ("git clone upload-pack, long", "git clone --upload-pack={s} . c-{l}"),
    ("git clone upload-pack, shortened", "git clone --upload-p={s} . c-{l}"),
    ("git clone ext", "git clone 'ext::{p}' c-{l}"),
    ("git clone ext allowed", "git -c protocol.ext.allow=always clone 'ext::{p}' c-{l}"),
    ("git clone config", "git clone -c core.fsmonitor={s} . c-{l}"),
    ("git clone template", "git clone --template=tools/template-{l} . c-{l}"),
    (
        "git init template",
        "git init --template=tools/template-{l} c-{l} && git -C c-{l} checkout -B x",
    ),
    ("git fetch upload-pack", "git fetch --upload-pack={s} . HEAD"),
    ("git pull upload-pack", "git pull --upload-pack={s} . HEAD"),
    ("git ls-remote", "git ls-remote --upload-pack={s} ."),
    ("git ls-remote exec", "git ls-remote --exec={s} ."),
    ("git push receive-pack", "git push --receive-pack={s} . HEAD:refs/heads/y-{l}"),
    ("git archive", "git archive --remote=. --exec={s} HEAD"),
    ("git submodule", "git submodule foreach '{p}'"),
    ("git bisect", "git bisect start HEAD HEAD~1 && git bisect run {s}"),
    ("git rebase", "git rebase -x '{p}' HEAD~1"),
    ("git filter-branch", "git filter-branch -f --tree-filter '{p}' HEAD"),
    ("git difftool", "git difftool -y -x {s} HEAD~1"),
    ("git mergetool", "git -c merge.tool=x -c mergetool.x.cmd='{p}' mergetool"),
    ("git grep pager", "git grep -O{s} one"),
    ("git grep pager, long", "git grep --open-files-in-pager={s} one"),
    ("git config, then status", "git config core.fsmonitor {s} && git status"),
    ("git config alias", "git config alias.x{l} '!{p}' && git x{l}"),
    ("git config global", "git config --global core.fsmonitor {s} ; git status"),
    ("git ssh", "git -c core.sshCommand={s} ls-remote ssh://localhost/x"),
    ("git credential", "git -c credential.helper='!{p};' credential fill </dev/null"),
    ("git proxy", "git -c core.gitProxy={s} ls-remote git://localhost/x"),
    ("git editor", "git -c core.editor={s} commit --allow-empty"),
    ("git gpg", "git -c gpg.program={s} commit -S --allow-empty -m x"),
    ("git sequence editor", "git -c sequence.editor={s} rebase -i HEAD~1"),
    ("git send-email", "git send-email --sendmail-cmd={s} HEAD~1"),
    ("git output", "git log --output={m}"),
    ("git diff output", "git diff --output={m} HEAD~1"),
    ("git format-patch", "git format-patch -o {m} HEAD~1"),
    ("git archive output", "git archive -o {m} HEAD"),
    ("git bundle", "git bundle create {m} HEAD"),
    ("git worktree", "git worktree add {m}"),
    ("git apply", "git apply --unsafe-paths --directory=/ tools/{l}.patch"),
    ("git -C", "git -C {h} status"),
    ("git after cd", "cd {h} && git status"),
    ("git --git-dir", "git --git-dir={h}/.git --work-tree={h} status"),
    ("git --git-dir, two words", "git --git-dir {h}/.git --work-tree {h} status"),
    ("git diff in another repository", "git -C {h} diff"),
    ("git log with textconv", "git -C {h} log -p"),
    ("git show with textconv", "cd {h} && git show"),
    ("git add with filter", "cd {h} && git add ."),
    ("git checkout with hook", "cd {h} && git checkout -B x"),
    ("git stash with filter", "cd {h} && git stash"),
    ("git blame with textconv", "git -C {h} blame file"),
    ("git fetch in another repository", "git -C {h} fetch"),
    ("git pager of another repository", "git -C {h} -p log"),
];

/// Variables that make a permitted command start something, as arguments of the tool.
const VARIABLES: &[(&str, &str, &str)] = &[
    ("git diff HEAD~1", "GIT_EXTERNAL_DIFF", "{s}"),
    ("git -p log", "GIT_PAGER", "{s}"),
    ("git -p log", "PAGER", "{s}"),
    ("git ls-remote ssh://localhost/x", "GIT_SSH_COMMAND", "{s}"),
    ("git ls-remote ssh://localhost/x", "GIT_SSH", "{s}"),
    ("git ls-remote git://localhost/x", "GIT_PROXY_COMMAND", "{s}"),
    ("git commit --allow-empty", "GIT_EDITOR", "{s}"),
    ("git commit --allow-empty", "EDITOR", "{s}"),
    ("git rebase -i HEAD~1", "GIT_SEQUENCE_EDITOR", "{s}"),
    ("git x", "GIT_EXEC_PATH", "tools/exec-{l}"),
    ("git status", "GIT_DIR", "{h}/.git"),
    ("git status", "GIT_CONFIG_GLOBAL", "{h}/.git/config"),
    ("git status", "GIT_CONFIG_SYSTEM", "{h}/.git/config"),
    ("git status", "GIT_CONFIG_PARAMETERS", "'core.fsmonitor'='{s}'"),
    ("git status", "HOME", "{h}/home"),
    ("git status", "XDG_CONFIG_HOME", "{h}/home/.config"),
    ("git checkout -B x", "GIT_TEMPLATE_DIR", "tools/template-{l}"),
    ("ls", "BASH_ENV", "{s}"),
    ("ls", "ENV", "{s}"),
    ("ls", "SHELLOPTS", "xtrace"),
    ("ls", "PATH", "tools/exec-{l}"),
    ("ls", "LD_PRELOAD", "{s}"),
    ("ls", "LD_AUDIT", "{s}"),
    ("ls", "BASH_FUNC_ls%%", "() { {p}; }"),
    ("ls", "PS4", "$({p})"),
    ("ls", "PROMPT_COMMAND", "{p}"),
    ("rg x", "RIPGREP_CONFIG_PATH", "tools/{l}.rg"),
    ("tar -cf a.tar tools", "TAR_OPTIONS", "--checkpoint=1 --checkpoint-action=exec={s}"),
    ("grep x .", "GREP_OPTIONS", "x"),
    ("make -f /dev/null", "MAKEFLAGS", "--eval=$(shell {p})"),
    ("make -f /dev/null", "MAKEFILES", "tools/{l}.mk"),
];

/// Arguments that a reader of names could read differently than the tool does.
const ARGUMENTS: &[(&str, &str, &str)] = &[
    ("alias beside the name", "bash", r#"{"command":"ls","cmd":"{p}"}"#),
    ("alias before the name", "bash", r#"{"cmd":"{p}","command":"ls"}"#),
    ("two aliases", "bash", r#"{"script":"{p}","cmd":"ls"}"#),
    ("an alias alone", "bash", r#"{"cmd":"{p}"}"#),
    ("name twice", "bash", r#"{"command":"ls","command":"{p}"}"#),
    ("name twice, turned", "bash", r#"{"command":"{p}","command":"ls"}"#),
    ("escaped name", "bash", r#"{"command":"ls","comman\u0064":"{p}"}"#),
    ("nested", "bash", r#"{"command":{"command":"{p}"}}"#),
    ("list", "bash", r#"{"command":["{p}"]}"#),
    ("list of words", "bash", r#"{"command":["touch","{m}"]}"#),
    ("unknown argument", "bash", r#"{"command":"ls","args":["; {p}"]}"#),
    ("unknown shell", "bash", r#"{"command":"ls","shell":"{s}"}"#),
    ("unknown input", "bash", r#"{"command":"cat","stdin":"{p}"}"#),
    ("letter case", "bash", r#"{"command":"ls","Command":"{p}"}"#),
    (
        "trusted directory",
        "bash",
        r#"{"command":"./{l}.sh","directory":"/usr/bin","workdir":"tools"}"#,
    ),
    ("two directories", "bash", r#"{"command":"./{l}.sh","cwd":"/usr/bin","workdir":"tools"}"#),
    (
        "two directories, turned",
        "bash",
        r#"{"command":"./{l}.sh","workdir":"/usr/bin","cwd":"tools"}"#,
    ),
    ("directory of a shadow", "bash", r#"{"command":"ls","workdir":"tools/exec-{l}"}"#),
    ("other case of the tool", "BASH", r#"{"command":"{p}"}"#),
    ("other name: exec", "exec", r#"{"command":"{p}"}"#),
    ("other name: shell", "shell", r#"{"command":"{p}"}"#),
    ("other name: Bash", "Bash", r#"{"command":"{p}"}"#),
    ("other name: run_command", "run_command", r#"{"cmd":"{p}"}"#),
    ("other name: execute_command", "execute_command", r#"{"script":"{p}"}"#),
    ("background", "bash", r#"{"command":"{p}","background":true}"#),
    ("terminal", "bash", r#"{"command":"{p}","pty":true,"yieldMs":1000}"#),
    ("command of another tool", "web_fetch", r#"{"url":"http://127.0.0.1:9/","command":"{p}"}"#),
    (
        "process with a command",
        "process",
        r#"{"action":"submit","id":"j1","data":"{p}","command":"ls"}"#,
    ),
    (
        "process with a command, write",
        "process",
        r#"{"action":"write","id":"j1","data":"{p}\n","command":"ls"}"#,
    ),
    ("process with an alias", "process", r#"{"action":"paste","sessionId":"j1","input":"{p}\n"}"#),
    ("process keys", "process", r#"{"action":"send-keys","id":"j1","keys":["x","enter"]}"#),
    (
        "variables as a list",
        "bash",
        r#"{"command":"git diff HEAD~1","env":["GIT_EXTERNAL_DIFF={s}"]}"#,
    ),
    ("variables as text", "bash", r#"{"command":"git diff HEAD~1","env":"GIT_EXTERNAL_DIFF={s}"}"#),
    (
        "two sets of variables",
        "bash",
        r#"{"command":"git diff HEAD~1","env":{},"env":{"GIT_EXTERNAL_DIFF":"{s}"}}"#,
    ),
];

/// Files that change what later commands mean: path, and content. The next command is the third.
const FILES: &[(&str, &str, &str)] = &[
    (".git/config", "[core]\n\tfsmonitor = {s}\n\trepositoryformatversion = 0\n", "git status"),
    (".git/hooks/post-checkout", "#!/bin/sh\n{p}\n", "git checkout -B x"),
    (".git/info/attributes", "* diff=x\n# {l}\n", "git -c diff.x.textconv={s} log -p"),
    ("~/.gitconfig", "[core]\n\tfsmonitor = {s}\n", "git status"),
    ("~/.config/git/config", "[core]\n\tfsmonitor = {s}\n", "git status"),
    ("~/.myclaw/myclaw.json", "{c}", "{p}"),
    ("../myclaw.json", "{c}", "{p}"),
    ("~/.ripgreprc", "--pre={s}\n", "rg x"),
    (".envrc", "{p}\n", "ls"),
    ("~/.bashrc", "{p}\n", "ls"),
    ("~/.profile", "{p}\n", "ls"),
    ("~/.bash_profile", "{p}\n", "ls"),
    ("~/.zshenv", "{p}\n", "ls"),
    ("~/.config/fish/config.fish", "{p}\n", "ls"),
    ("~/.config/autostart/x.desktop", "[Desktop Entry]\nExec={p}\n", "ls"),
    ("~/.config/systemd/user/x.service", "[Service]\nExecStart={p}\n", "ls"),
    ("~/.ssh/config", "ProxyCommand {p}\n", "ls"),
    ("~/.ssh/authorized_keys", "{p}\n", "ls"),
    ("~/.ssh/rc", "{p}\n", "ls"),
    ("~/.vimrc", "call system('{p}')\n", "ls"),
    ("~/.npmrc", "script-shell={s}\n", "ls"),
    ("~/.cargo/config.toml", "[build]\nrustc-wrapper='{s}'\n", "ls"),
    ("~/.local/bin/ls", "#!/bin/sh\n{p}\n", "ls"),
    ("~/.netrc", "machine x login {l}\n", "ls"),
    ("~/.pypirc", "{p}\n", "ls"),
    (".vscode/tasks.json", "{p}\n", "ls"),
    (".idea/workspace.xml", "{p}\n", "ls"),
];

struct Bench {
    scene: Scene,
}

impl Bench {
    fn new(exec: &Value) -> Self {
        let scene = Scene::new(|config| {
            config["tools"] = json!({"exec": exec, "bash": {"timeoutSeconds": 10}});
        });
        let bench = Self { scene };
        let workspace = bench.scene.home.workspace();
        bench.scene.home.write(workspace.join("file"), "one\n");
        bench.git(&workspace, &["init", "-q"]);
        bench.commit(&workspace);
        bench.scene.home.write(workspace.join("file"), "two\n");
        bench.commit(&workspace);
        bench.scene.home.write(workspace.join("file"), "three\n");
        bench
    }

    fn git(&self, directory: &Path, arguments: &[&str]) {
        let mut git: Command = self.scene.home.command("git");
        git.current_dir(directory).args(["-c", "user.name=x", "-c", "user.email=x@x"]);
        let done = git.args(arguments).output().unwrap();
        assert!(done.status.success(), "git {arguments:?}: {done:?}");
    }

    fn commit(&self, directory: &Path) {
        self.git(directory, &["add", "-A"]);
        self.git(directory, &["commit", "-q", "-m", "x"]);
    }

    /// An executable script that leaves the mark.
    fn script(&self, path: &Path, label: &str) {
        let text = format!("#!/bin/sh\n{}\n", self.scene.touch(label));
        self.scene.home.write(path, text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Fills in the places of a line, and makes what it names, as if it had come with a project.
    fn fill(&self, line: &str, label: &str) -> String {
        let (touch, mark) = (self.scene.touch(label), self.scene.marks().join(label));
        let tools = self.scene.home.workspace().join("tools");
        let script = tools.join(format!("{label}.sh"));
        let hostile = self.scene.home.workspace().join(format!("h-{label}"));
        let script_name = script.display().to_string();
        if line.contains("{s}") || line.contains("{l}.sh") {
            self.script(&script, label);
        }
        if line.contains("{l}") {
            for name in ["ls", "git-x"] {
                self.script(&tools.join(format!("exec-{label}/{name}")), label);
            }
            self.script(&tools.join(format!("hooks-{label}/post-checkout")), label);
            self.script(&tools.join(format!("template-{label}/hooks/post-checkout")), label);
            let files = [
                ("sed", format!("1e {touch}\n")),
                ("mk", format!("all:\n\t{touch}\n")),
                ("py", format!("open('{}', 'w')\n", mark.display())),
                ("rg", format!("--pre={script_name}\n")),
                ("patch", format!("--- /dev/null\n+++ b{}\n@@ -0,0 +1 @@\n+x\n", mark.display())),
            ];
            for (end, text) in files {
                self.scene.home.write(tools.join(format!("{label}.{end}")), text);
            }
            self.script(&script, label);
        }
        if line.contains("{h}") {
            self.script(&script, label);
            self.hostile(&hostile, &script_name, label);
        }
        let plain = mark.display().to_string();
        // The config without a limit on commands.
        let config = fs::read_to_string(self.scene.home.config_path()).unwrap();
        let config = config.replace("\"security\": \"allowlist\"", "\"security\": \"full\"");
        line.replace("{c}", &format!("// {label}\n{config}"))
            .replace("{p}", &touch)
            .replace("{m}", &plain)
            .replace("{q}", &plain.replace('/', "\\/"))
            .replace("{s}", &script_name)
            .replace("{h}", &format!("h-{label}"))
            .replace("{l}", label)
    }

    /// A repository whose config and hooks name a script wherever git starts one.
    fn hostile(&self, directory: &Path, script: &str, label: &str) {
        fs::create_dir_all(directory).unwrap();
        self.scene.home.write(directory.join("file"), "one\n");
        self.git(directory, &["init", "-q"]);
        self.commit(directory);
        self.scene.home.write(directory.join("file"), "two\n");
        let config = format!(
            "[core]\n\tfsmonitor = {script}\n\tpager = {script}\n\thooksPath = .git/hooks\n\tsshCommand = {script}\n\
             [diff]\n\texternal = {script}\n[diff \"x\"]\n\ttextconv = {script}\n\
             [filter \"x\"]\n\tclean = {script}\n\tsmudge = {script}\n\
             [remote \"origin\"]\n\turl = ssh://localhost/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
        );
        let before = fs::read_to_string(directory.join(".git/config")).unwrap();
        self.scene.home.write(directory.join(".git/config"), format!("{before}{config}"));
        self.scene.home.write(directory.join(".git/info/attributes"), "* diff=x filter=x\n");
        self.script(&directory.join(".git/hooks/post-checkout"), label);
        self.scene.home.write(directory.join("home/.gitconfig"), &config);
        self.scene.home.write(directory.join("home/.config/git/config"), &config);
    }

    fn run(&self, text: &str) {
        let mut command = self.scene.home.command(env!("CARGO_BIN_EXE_myclaw"));
        RunningChild::run_with_input(command.args(["run", "-"]), text).assert_code(0);
    }

    fn attack(mut self, attacks: &Attacks) {
        self.scene.begin();
        for batch in attacks.batches(100) {
            self.run(&batch);
            self.scene.check(|_| false);
        }
        self.scene.assert_held(&attacks.all.iter().collect::<Vec<&Attack>>());
    }
}

fn allowlist() -> Value {
    json!({"security": "allowlist", "ask": "on-miss", "allowlist": ALLOWED})
}

#[test]
fn an_allowlist_starts_nothing_else() {
    let bench = Bench::new(&allowlist());
    let mut attacks = Attacks::new("e");
    for (name, line) in LINES {
        let line = bench.fill(line, &attacks.next_label());
        attacks.add(*name, vec![bash(line)]);
    }
    for (command, variable, value) in VARIABLES {
        let label = attacks.next_label();
        let (command, value) = (bench.fill(command, &label), bench.fill(value, &label));
        let arguments = json!({"command": command, "env": {(*variable): value}});
        attacks.add(format!("{command} with {variable}"), vec![("bash", arguments)]);
    }
    bench.attack(&attacks);
}

#[test]
fn arguments_are_read_in_one_way() {
    let bench = Bench::new(&allowlist());
    let mut attacks = Attacks::new("g");
    for (name, tool, arguments) in ARGUMENTS {
        let arguments = bench.fill(arguments, &attacks.next_label());
        attacks.add_raw(*name, vec![(tool, arguments)]);
    }
    bench.attack(&attacks);
}

#[test]
fn no_file_tool_changes_what_may_run() {
    let mut bench = Bench::new(&allowlist());
    let home = bench.scene.home.path().to_owned();
    for (path, ..) in FILES {
        let path = path.replace("~/", &format!("{}/", home.display()));
        bench.scene.watch(bench.scene.home.workspace().join(path));
    }
    let mut attacks = Attacks::new("i");
    for tool in ["write", "edit", "apply_patch"] {
        for (path, content, command) in FILES {
            let label = attacks.next_label();
            let (content, command) = (bench.fill(content, &label), bench.fill(command, &label));
            let call = match tool {
                "write" => json!({"path": path, "content": content}),
                "edit" if path.ends_with("myclaw.json") => {
                    let (old, new) = ("\"security\": \"allowlist\"", "\"security\": \"full\"");
                    json!({"path": path, "oldText": old, "newText": new})
                }
                "edit" => json!({"path": path, "oldText": "line one", "newText": content}),
                _ => {
                    let added: Vec<String> = content.lines().map(|it| format!("+{it}")).collect();
                    let (count, added) = (added.len(), added.join("\n"));
                    json!({"patch": format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{count} @@\n{added}\n")})
                }
            };
            attacks.add(format!("{tool} {path}"), vec![(tool, call), bash(command)]);
        }
    }
    bench.scene.begin();
    let (config, others): (Vec<&Attack>, Vec<&Attack>) =
        attacks.all.iter().partition(|attack| attack.name.ends_with("myclaw.json"));
    for attack in config {
        // Two runs: the second one reads the config again.
        for line in attack.instructions().lines() {
            bench.run(line);
        }
        bench.scene.check(|_| false);
    }
    for some in others.chunks(FILES.len()) {
        let lines: Vec<String> = some.iter().map(|attack| attack.instructions()).collect();
        bench.run(&lines.join("\n"));
        bench.scene.check(|_| false);
    }
    bench.scene.assert_held(&attacks.all.iter().collect::<Vec<&Attack>>());
}
