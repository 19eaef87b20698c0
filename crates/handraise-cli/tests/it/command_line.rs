//! The command line: help, mistakes, completions.

use crate::support::{Home, stderr};

/// Every command that there is, with its sub-commands.
const COMMANDS: &[&[&str]] = &[
    &["up"],
    &["agent"],
    &["mcp"],
    &["ask"],
    &["demo"],
    &["inbox"],
    &["inbox", "list"],
    &["inbox", "show"],
    &["inbox", "answer"],
    &["inbox", "skip"],
    &["inbox", "watch"],
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
        ["up", "agent", "mcp", "ask", "demo", "inbox", "token", "doctor", "completions", "help"]
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
