//! The paths that no tool of a session touches: what this program keeps for itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_auth::STORE_FILE;
use myclaw_config::{CommandLine, KeySource, Paths};
use myclaw_files::{ClosedPaths, KnownLinks, Opening, PathUse, variables};

use crate::SessionConfig;
use crate::mcp::server_files;

/// Directory with skills in the state directory. Models read the files in it.
const SKILLS: &str = "skills";

impl SessionConfig {
    /// What the tools of the session neither read nor change: the state directory without its workspaces and skills, and
    /// what belongs to it elsewhere. Follows the links of each place; blocks for some system calls.
    pub(crate) fn closed_paths(&self) -> Arc<ClosedPaths> {
        let (config, paths) = (&self.config, &self.home.paths);
        let state = paths.state_dir();
        let (mut closed, mut links) = (ClosedPaths::default(), KnownLinks::default());
        closed.add(state, Opening::Closed, &mut links);
        for file in self.own_files(&mut links) {
            closed.add(&file, Opening::Closed, &mut links);
        }
        let agents = config.agents.list.iter().map(|entry| entry.id.as_str());
        let workspaces =
            agents.filter_map(|id| Some(config.resolve_agent(Some(id)).ok()?.workspace));
        for workspace in workspaces.chain([self.agent.workspace.clone(), paths.workspaces_dir()]) {
            closed.add(&workspace, Opening::Everything, &mut links);
        }
        let artifacts = self.home.side_files().artifact_directory(&self.session_key);
        closed.add(&artifacts, Opening::Reading, &mut links);
        if !config
            .tools
            .fs
            .state_directories
            .iter()
            .any(|name| Path::new(name.trim()) == Path::new(SKILLS))
        {
            closed.add(&state.join(SKILLS), Opening::Reading, &mut links);
        }
        // Models read the skills in it, and commands of the tools run the scripts that belong to them.
        if !self.home.has_no_packages() {
            closed.add(&self.home.packages().content(), Opening::Reading, &mut links);
        }
        for name in &config.tools.fs.state_directories {
            closed.add(&state.join(name.trim()), Opening::Everything, &mut links);
        }
        // The programs of the owner's commands may be of the system, so they are not hidden.
        let own = config.own_commands().flat_map(|line| named_files(line, paths));
        for program in own.chain(server_files(config, paths)) {
            let real = links.real_path(&program).unwrap_or(program);
            if closed.refusing(&real, PathUse::Read).is_none() {
                closed.add(&real, Opening::Reading, &mut links);
            }
        }
        Arc::new(closed)
    }

    /// Files with the config and with keys, wherever they are.
    fn own_files(&self, links: &mut KnownLinks) -> Vec<PathBuf> {
        let (config, paths) = (&self.config, &self.home.paths);
        let config_file = paths.config_file();
        let mut files = vec![config_file.to_owned(), paths.state_dir().join(".env")];
        // A change leaves a copy of the old text next to the file, or next to what a link leads to.
        for file in
            [Some(config_file.to_owned()), links.real_path(config_file).ok()].into_iter().flatten()
        {
            let mut backup = file.into_os_string();
            backup.push(".bak");
            files.push(backup.into());
        }
        let listed = config.agents.list.iter().map(|entry| entry.id.as_str());
        let others = listed.filter_map(|id| config.resolve_agent(Some(id)).ok()?.agent_dir);
        for directory in others.chain(self.agent.agent_dir.clone()) {
            files.push(directory.join(STORE_FILE));
            files.push(directory);
        }
        let sources =
            config.secrets().filter_map(|key| KeySource::from_config(key, Some(paths)).ok());
        let given = [variables::STORE_URL, variables::STORE_KEY];
        let given = given.into_iter().filter_map(|name| self.home.environment.get(name));
        let sources = sources.chain(given.filter_map(|written| {
            KeySource::parse(&written.trim().into(), |path| paths.resolve_in_config(path)).ok()
        }));
        files.extend(sources.filter_map(|source| match source {
            KeySource::File(path) => Some(path),
            _ => None,
        }));
        let tls = config.gateway.tls.as_ref();
        files.extend(tls.and_then(|tls| paths.resolve_in_config(&tls.key).ok()));
        files
    }
}

/// The files that a command of the config names: programs and scripts. Text for a shell is split at blanks, which finds the
/// usual ones.
fn named_files(line: &CommandLine, paths: &Paths) -> Vec<PathBuf> {
    let words: Vec<&str> = match line {
        CommandLine::Shell(text) => text.split_whitespace().collect(),
        CommandLine::Program(words) => words.iter().map(String::as_str).collect(),
    };
    let trimmed = words.into_iter().map(|word| word.trim_matches(['"', '\'', ';', '&', '(', ')']));
    let are_paths = trimmed.filter(|word| word.contains('/'));
    let resolved = are_paths.filter_map(|word| paths.resolve_in_config(word).ok());
    resolved.filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests;
