//! The command line: help, mistakes, completions.

use std::os::unix::ffi::OsStrExt as _;

use crate::support::{Home, stderr};

/// Every command that there is, with its sub-commands.
const COMMANDS: &[&[&str]] = &[
    &["up"],
    &["agent"],
    &["mcp"],
    &["ask"],
    &["backup"],
    &["hook"],
    &["hook", "claude"],
    &["tool"],
    &["demo"],
    &["inbox"],
    &["inbox", "list"],
    &["inbox", "show"],
    &["inbox", "answer"],
    &["inbox", "skip"],
    &["inbox", "watch"],
    &["token"],
    &["token", "create"],
    &["token", "list"],
    &["token", "revoke"],
    &["doctor"],
    &["completions"],
];

#[test]
fn every_command_has_help_with_an_example() {
    let home = Home::new();
    for command in COMMANDS {
        let help = home.stdout(&[*command, &["--help"]].concat());
        assert!(help.contains("Example"), "{command:?} has no example");
        assert!(help.contains(&format!("handraise {}", command.join(" "))), "{command:?}: {help}");
        assert!(help.contains("--config <FILE>"), "{command:?} does not take --config");
    }
}

#[test]
fn only_commands_that_work_are_offered() {
    let help = Home::new().stdout(&["--help"]);
    let offered: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(
        offered,
        [
            "up",
            "agent",
            "mcp",
            "ask",
            "tool",
            "hook",
            "demo",
            "inbox",
            "report",
            "token",
            "backup",
            "doctor",
            "completions",
            "help"
        ]
    );
}

#[test]
fn a_command_without_its_dashes_is_told_of_them() {
    let home = Home::new();
    for (words, hint) in [
        (&["mcp", "npx", "-y", "x"][..], Some("-- is missing before the command: handraise mcp -- npx …")),
        (&["mcp", "--log", "warn", "npx"], Some("-- is missing before the command: handraise mcp -- npx …")),
        (&["agent", "claude-agent-acp"], Some("handraise agent -- claude-agent-acp …")),
        (&["mcp", "--no-such-flag", "--", "npx"], None),
        (&["mcp", "npx", "--", "npx"], None),
        (&["up", "npx"], None),
    ] {
        let said = stderr(&home.run(words));
        match hint {
            Some(hint) => assert!(said.contains(hint), "{words:?}: {said}"),
            None => assert!(!said.contains("is missing"), "{words:?}: {said}"),
        }
    }
}

#[test]
fn a_command_line_that_makes_no_sense_exits_2_and_leaves_stdout_alone() {
    let home = Home::new();
    for wrong in
        [&["upp"][..], &["up", "--lissten", "x"], &["agent"], &["mcp"], &["mcp", "x"], &["token", "create"]]
    {
        let output = home.run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{wrong:?}");
    }
    let output = home.run(&["token", "create", "--scope", "boss"]);
    assert!(stderr(&output).contains("viewer, operator, admin and holder are"), "{}", stderr(&output));
}

#[test]
fn completions_are_for_every_shell() {
    let home = Home::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(home.stdout(&["completions", shell]).contains("handraise"), "{shell}");
    }
}

#[test]
fn stdout_that_nobody_reads_is_no_panic() {
    let home = Home::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = home.handraise(&["doctor"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: "), "{}", stderr(&output));
}

#[test]
fn a_token_that_could_not_be_printed_is_named_with_how_to_revoke_it() {
    let home = Home::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = home.handraise(&["token", "create", "--scope", "viewer"]).stdout(full).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: stdout cannot be written: No space left on device"), "{said}");
    let revoke = said.split('`').nth(1).unwrap().strip_prefix("handraise ").unwrap();
    home.stdout(&revoke.split(' ').collect::<Vec<_>>());
    assert_eq!(home.stdout(&["token", "list"]).lines().count(), 1, "the heading alone");
}

#[test]
fn what_stands_for_a_server_is_said_where_none_is_named() {
    let said = stderr(&Home::new().run(&["mcp"]));
    assert!(said.contains("handraise mcp --upstream URL"), "{said}");
}

#[test]
fn an_argument_that_is_no_text_is_named() {
    let word = std::ffi::OsStr::from_bytes(b"Deploy\xff?");
    let output = Home::new().handraise(&["ask"]).arg(word).args(["--choice", "yes"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("error: argument 2, \"Deploy\u{fffd}?\", is not UTF-8"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_scripted_programs_have_help() {
    let home = Home::new();
    for name in ["fake-agent", "fake-server"] {
        assert!(home.stdout(&[name, "--help"]).starts_with("A scripted "), "{name}");
    }
}

#[test]
fn an_empty_prompt_is_refused() {
    let output = Home::new().run(&["agent", "--inbox", "none", "--prompt", " ", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--prompt is empty"), "{}", stderr(&output));
}

#[test]
fn a_word_that_is_no_level_is_no_filter() {
    let home = Home::new();
    for (arguments, variable, from) in
        [(&["doctor", "--log", "wran"][..], "", "--log"), (&["doctor"], "info,loud", "HANDRAISE_LOG")]
    {
        let output = home.handraise(arguments).env("HANDRAISE_LOG", variable).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("error: {from} has ")), "{said}");
        assert!(said.contains("levels are off, error, warn, info, debug and trace"), "{said}");
    }
    for fine in ["warn", "OFF", "info,handraise_server=debug", "handraise_cli=trace", "[span]=info"] {
        assert!(home.run(&["doctor", "--log", fine]).status.success(), "{fine}");
    }
}

#[test]
fn a_data_directory_that_was_named_is_named_again() {
    let home = Home::new();
    for command in
        [&["inbox", "list"][..], &["ask", "Deploy?", "--text"], &["agent", "--", "true"], &["doctor"]]
    {
        let mut words = vec![command[0]];
        let folder = home.path().join("an other");
        words.extend(["--data-dir", folder.to_str().unwrap()]);
        words.extend(&command[1..]);
        let output = home.run(&words);
        let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        let up = format!("`handraise up --data-dir '{}'`", folder.display());
        assert!(said.contains(&up), "{words:?}: {said}");
    }
}

#[test]
fn a_cause_is_told_once_with_the_remedy_that_fits() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (words, remedy) in [
        (&["up", "--no-open", "--listen", &address][..], "is another program listening there?"),
        (&["mcp", "--listen", &address, "--", "cat"], "name another address with --listen"),
    ] {
        let said = stderr(&home.run(words));
        assert_eq!(said.matches("os error 98").count(), 1, "{words:?}: {said}");
        assert!(said.contains(remedy), "{words:?}: {said}");
    }
    let deep = home.path().join("d".repeat(120));
    let said = stderr(&home.run(&[
        "up",
        "--no-open",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        deep.to_str().unwrap(),
    ]));
    assert!(said.contains("bytes, and that of a socket takes 107; give a shorter --data-dir"), "{said}");
}
