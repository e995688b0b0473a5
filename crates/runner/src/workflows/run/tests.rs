use super::*;

#[test]
fn names_become_variables() {
    for (argument, variable) in
        [("city", "CITY"), ("start-date", "START_DATE"), ("2nd", "_2ND"), ("", "_"), ("ü x", "__X")]
    {
        assert_eq!(variable_name(argument).as_deref(), Ok(variable));
    }
}

#[test]
fn variables_that_decide_which_code_runs_are_refused() {
    for argument in [
        "PATH",
        "path",
        "Path",
        "ld_preload",
        "LD-PRELOAD",
        "ld library path",
        "bash_env",
        "env",
        "ENV",
        "ifs",
        "IFS",
        "shellopts",
        "ps4",
        "prompt_command",
        "bash_func_x%%",
        "BASH_FUNC_ls()",
        "pythonpath",
        "node_options",
        "perl5opt",
        "rubyopt",
        "git_ssh_command",
        "home",
        "http_proxy",
        "dyld_insert_libraries",
        "myclaw_home",
    ] {
        let refused = variable_name(argument);
        assert!(refused.is_err(), "{argument:?} became {refused:?}");
    }
}

#[test]
fn two_arguments_for_one_variable_are_refused() {
    let arguments = serde_json::json!({"a-b": "1", "a_b": "2"});
    let problem = variables(arguments.as_object().unwrap()).unwrap_err();
    assert_eq!(problem, "two arguments mean the variable A_B; give it once");
}
