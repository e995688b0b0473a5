//! Other names of tools and of their arguments, which models know from the agents they were trained with.
//!
//! A call by such a name is a call of the tool: policies, hooks and events see the tool's own names. Names that other
//! agents use for something else are not here.

use myclaw_engine::ToolAliases;

const PATH: [(&str, &str); 2] = [("file_path", "path"), ("filePath", "path")];

pub(crate) const READ: ToolAliases = ToolAliases {
    names: &["Read", "read_file", "view_file"],
    arguments: &[
        PATH[0],
        PATH[1],
        ("start_line", "startLine"),
        ("offset", "startLine"),
        ("end_line", "endLine"),
    ],
    // A number of lines, for models that know this tool with `offset` and `limit`.
    unlisted: &[("limit", "integer")],
};

pub(crate) const BASH: ToolAliases = ToolAliases {
    names: &["Bash", "exec", "shell", "run_command", "run_shell_command", "execute_command"],
    arguments: &[
        ("cmd", "command"),
        ("script", "command"),
        ("timeoutSeconds", "timeout"),
        ("timeout_seconds", "timeout"),
        ("cwd", "workdir"),
        ("working_directory", "workdir"),
        ("run_in_background", "background"),
        ("is_background", "background"),
        ("yield_ms", "yieldMs"),
        ("tty", "pty"),
    ],
    // Milliseconds after which the command becomes a background job.
    unlisted: &[("yieldMs", "integer")],
};

pub(crate) const PROCESS: ToolAliases = ToolAliases {
    names: &[],
    arguments: &[
        ("sessionId", "id"),
        ("session_id", "id"),
        ("jobId", "id"),
        ("job_id", "id"),
        ("text", "data"),
        ("input", "data"),
        ("wait_ms", "waitMs"),
    ],
    // Of the action `log`: the first line, and the number of lines.
    unlisted: &[("offset", "integer"), ("limit", "integer")],
};

pub(crate) const EDIT: ToolAliases = ToolAliases {
    names: &["Edit", "edit_file", "str_replace", "replace"],
    arguments: &[
        PATH[0],
        PATH[1],
        ("old_text", "oldText"),
        ("old_string", "oldText"),
        ("oldString", "oldText"),
        ("old_str", "oldText"),
        ("new_text", "newText"),
        ("new_string", "newText"),
        ("newString", "newText"),
        ("new_str", "newText"),
        ("replace_all", "all"),
        ("replaceAll", "all"),
    ],
    unlisted: &[],
};

pub(crate) const WRITE: ToolAliases = ToolAliases {
    names: &["Write", "write_file", "create_file", "write_to_file"],
    arguments: &[
        PATH[0],
        PATH[1],
        ("contents", "content"),
        ("text", "content"),
        ("file_text", "content"),
    ],
    unlisted: &[],
};

pub(crate) const GREP: ToolAliases = ToolAliases {
    names: &["Grep", "search_file_content", "grep_search"],
    arguments: &[
        ("query", "pattern"),
        ("regex", "pattern"),
        ("directory", "path"),
        ("dir", "path"),
        ("dir_path", "path"),
        ("file", "path"),
        ("include", "glob"),
        ("ignore_case", "ignoreCase"),
        ("caseInsensitive", "ignoreCase"),
        ("-i", "ignoreCase"),
        ("fixedStrings", "literal"),
        ("-C", "context"),
        ("head_limit", "limit"),
    ],
    unlisted: &[],
};

pub(crate) const FIND: ToolAliases = ToolAliases {
    names: &["Find", "Glob", "glob_search", "find_files"],
    arguments: &[
        ("glob", "pattern"),
        ("name", "pattern"),
        ("query", "pattern"),
        ("directory", "path"),
        ("dir", "path"),
        ("dir_path", "path"),
    ],
    unlisted: &[],
};

pub(crate) const LS: ToolAliases = ToolAliases {
    names: &["LS", "list", "list_dir", "list_directory", "list_files"],
    arguments: &[PATH[0], ("directory", "path"), ("dir", "path"), ("dir_path", "path")],
    unlisted: &[],
};

pub(crate) const MEMORY_SEARCH: ToolAliases = ToolAliases {
    names: &[],
    arguments: &[
        ("q", "query"),
        ("limit", "maxResults"),
        ("max_results", "maxResults"),
        ("min_score", "minScore"),
    ],
    unlisted: &[("maxResults", "integer"), ("minScore", "number")],
};

pub(crate) const MEMORY_GET: ToolAliases = ToolAliases {
    names: &[],
    arguments: &[PATH[0], PATH[1], ("startLine", "from"), ("offset", "from"), ("limit", "lines")],
    unlisted: &[],
};

pub(crate) const APPLY_PATCH: ToolAliases = ToolAliases {
    names: &["ApplyPatch", "applypatch", "patch"],
    arguments: &[("input", "patch"), ("diff", "patch")],
    unlisted: &[],
};
