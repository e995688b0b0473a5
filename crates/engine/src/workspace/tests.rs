use std::fs;

use super::*;

#[test]
fn a_new_workspace_gets_its_directory_and_the_starter_file_only() {
    let home = tempfile::tempdir().unwrap();
    let workspace = home.path().join("deep/er/workspace");

    let bootstrap = prepare_workspace(&workspace, &PromptFiles::All).unwrap();

    let names: Vec<_> =
        fs::read_dir(&workspace).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["AGENTS.md"]);
    assert_eq!(bootstrap.files, [], "nobody has written anything yet");
    assert_eq!(bootstrap.notices, Vec::<Notice>::new());
}

#[cfg(unix)]
#[test]
fn directories_that_are_made_belong_to_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let state = home.path().join(".myclaw");

    prepare_workspace(&state.join("workspace"), &PromptFiles::All).unwrap();

    assert_eq!((mode(&state), mode(&state.join("workspace"))), (0o700, 0o700));
    assert_eq!(mode(home.path()), 0o755, "what exists keeps its mode");
}

#[test]
fn existing_files_are_kept_and_read_in_prompt_order() {
    let workspace = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("USER.md", "u"),
        ("AGENTS.md", "mine"),
        ("SOUL.md", " \n\t"),
        ("BOOTSTRAP.md", "b"),
        ("OTHER.md", "o"),
    ] {
        fs::write(workspace.path().join(name), text).unwrap();
    }

    let bootstrap = prepare_workspace(workspace.path(), &PromptFiles::All).unwrap();

    let files: Vec<_> =
        bootstrap.files.iter().map(|file| (file.name, file.content.as_str())).collect();
    assert_eq!(files, [("AGENTS.md", "mine"), ("USER.md", "u"), ("BOOTSTRAP.md", "b")]);
}

#[test]
fn files_are_cut_by_characters_each_and_together() {
    let workspace = tempfile::tempdir().unwrap();
    let long = "ä".repeat(MAX_FILE_CHARS + 7);
    for name in BOOTSTRAP_FILES {
        fs::write(workspace.path().join(name), &long).unwrap();
    }

    let bootstrap = prepare_workspace(workspace.path(), &PromptFiles::All).unwrap();

    let lengths: Vec<_> = bootstrap.files.iter().map(|file| file.content.chars().count()).collect();
    assert_eq!(lengths, [50_000, 50_000, 50_000, 50_000], "200,000 characters in all");
    assert_eq!(bootstrap.notices.len(), BOOTSTRAP_FILES.len());
}

#[test]
fn system_md_is_apart_from_the_other_files_and_counts_first() {
    let workspace = tempfile::tempdir().unwrap();
    fs::write(workspace.path().join("SYSTEM.md"), "x".repeat(MAX_FILE_CHARS + 1)).unwrap();
    for name in BOOTSTRAP_FILES {
        fs::write(workspace.path().join(name), "y".repeat(MAX_FILE_CHARS)).unwrap();
    }

    let bootstrap = prepare_workspace(workspace.path(), &PromptFiles::All).unwrap();

    let identity = bootstrap.identity.unwrap();
    assert_eq!(
        (identity.name, identity.content.len(), identity.is_cut),
        ("SYSTEM.md", 50_000, true)
    );
    assert_eq!(bootstrap.files.len(), 3, "200,000 characters in all");
}

#[test]
fn a_system_md_that_is_not_a_regular_file_is_reported_and_not_read() {
    let workspace = tempfile::tempdir().unwrap();
    fs::create_dir(workspace.path().join("SYSTEM.md")).unwrap();

    let bootstrap = prepare_workspace(workspace.path(), &PromptFiles::All).unwrap();

    assert_eq!(bootstrap.identity, None);
    assert!(matches!(
        &bootstrap.notices[..],
        [Notice::BootstrapFileUnreadable { file: "SYSTEM.md", .. }]
    ));
}

#[test]
fn a_file_that_just_fits_is_not_reported_as_cut() {
    let workspace = tempfile::tempdir().unwrap();
    fs::write(workspace.path().join("AGENTS.md"), "x".repeat(MAX_FILE_CHARS)).unwrap();

    let bootstrap = prepare_workspace(workspace.path(), &PromptFiles::All).unwrap();

    assert_eq!(bootstrap.files[0].content.len(), MAX_FILE_CHARS);
    assert_eq!(bootstrap.notices, Vec::<Notice>::new());
}

#[test]
fn a_file_where_the_workspace_should_be_is_a_clear_error() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("workspace");
    fs::write(&path, "").unwrap();

    let error = prepare_workspace(&path, &PromptFiles::All).unwrap_err().to_string();

    assert!(error.contains(&path.display().to_string()), "{error}");
    assert!(error.contains("Check that the path is a directory"), "{error}");
}

#[test]
fn bytes_that_are_not_utf8_do_not_stop_a_run() {
    let workspace = tempfile::tempdir().unwrap();
    fs::write(workspace.path().join("AGENTS.md"), b"caf\xe9 rules").unwrap();

    let bootstrap = prepare_workspace(workspace.path(), &PromptFiles::All).unwrap();

    assert_eq!(bootstrap.files[0].content, "caf\u{fffd} rules");
}

#[test]
fn control_characters_reach_no_prompt() {
    let (workspace, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let odd: String =
        (0..0xa0).filter_map(char::from_u32).filter(|sign| sign.is_control()).collect();
    let plain = "a\tb\r\nc\n";
    for directory in [&workspace, &own] {
        for name in BOOTSTRAP_NAMES {
            fs::write(directory.path().join(name), format!("{plain}{odd}")).unwrap();
        }
    }
    let shared = PromptFiles::Shared { own_workspace: own.path().to_owned() };
    for files in [PromptFiles::All, shared] {
        let found = prepare_workspace(workspace.path(), &files).unwrap();
        let texts = found.files.iter().chain(&found.identity).chain(&found.notes);
        for file in texts {
            let is_odd = |sign: char| sign.is_control() && !"\t\r\n".contains(sign);
            assert!(!file.content.contains(is_odd), "{}", file.name);
            assert!(
                file.content.starts_with(plain) && file.content.contains('\u{fffd}'),
                "{}",
                file.name
            );
        }
        assert_eq!(found.notes.is_some(), files != PromptFiles::All);
    }
}

#[test]
fn a_session_of_others_gets_what_says_how_to_work_and_its_own_notes() {
    let (workspace, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in BOOTSTRAP_NAMES {
        fs::write(workspace.path().join(name), name).unwrap();
        fs::write(own.path().join(name), format!("theirs: {name}")).unwrap();
    }
    let shared = PromptFiles::Shared { own_workspace: own.path().to_owned() };

    let bootstrap = prepare_workspace(workspace.path(), &shared).unwrap();

    assert_eq!(bootstrap.identity.unwrap().content, "SYSTEM.md");
    let files: Vec<_> = bootstrap.files.iter().map(|file| file.content.as_str()).collect();
    assert_eq!(files, ["AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md"]);
    assert_eq!(bootstrap.notes.unwrap().content, "theirs: MEMORY.md");
    assert_eq!(bootstrap.notices, Vec::<Notice>::new());
}

#[test]
fn what_poses_as_notes_is_not_read() {
    use std::os::unix::fs::symlink;

    let workspace = tempfile::tempdir().unwrap();
    let secret = workspace.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    for kind in ["link", "device", "fifo", "directory"] {
        let own = tempfile::tempdir().unwrap();
        let notes = own.path().join("MEMORY.md");
        match kind {
            "link" => symlink(&secret, &notes).unwrap(),
            "device" => symlink("/dev/zero", &notes).unwrap(),
            "fifo" => {
                let made = std::process::Command::new("mkfifo").arg(&notes).status().unwrap();
                assert!(made.success());
            }
            _ => fs::create_dir(&notes).unwrap(),
        }
        let shared = PromptFiles::Shared { own_workspace: own.path().to_owned() };

        let bootstrap = prepare_workspace(workspace.path(), &shared).unwrap();

        assert_eq!(bootstrap.notes, None, "{kind}");
        assert!(
            matches!(
                &bootstrap.notices[..],
                [Notice::BootstrapFileUnreadable { file: "MEMORY.md", .. }]
            ),
            "{kind}: {:?}",
            bootstrap.notices
        );
    }
}

#[test]
fn long_notes_are_cut() {
    let (workspace, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(own.path().join("MEMORY.md"), "ä".repeat(MAX_NOTES_CHARS + 1)).unwrap();
    let shared = PromptFiles::Shared { own_workspace: own.path().to_owned() };

    let bootstrap = prepare_workspace(workspace.path(), &shared).unwrap();

    let notes = bootstrap.notes.unwrap();
    assert_eq!((notes.content.chars().count(), notes.is_cut), (MAX_NOTES_CHARS, true));
}
