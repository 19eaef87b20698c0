//! Where settings come from, through the binary.

use std::{
    fs::Permissions,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use crate::support::{Home, binary, stderr};

/// A setting that no command survives, to see whether a file is read.
const HOSTILE: &str = "listen = 'read!'\n";

#[test]
fn s2_a_config_file_in_the_working_directory_is_never_read() {
    let home = Home::new();
    std::fs::write(home.work().join("handraise.toml"), HOSTILE).unwrap();
    std::fs::create_dir(home.work().join("handraise")).unwrap();
    std::fs::write(home.work().join("handraise/handraise.toml"), HOSTILE).unwrap();
    assert!(home.run(&["doctor"]).status.success());
    // Not even where a relative XDG directory would put it.
    let output = home.handraise(&["doctor"]).env("XDG_CONFIG_HOME", ".").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn s2_no_command_reads_what_a_cloned_repository_brings() {
    let home = Home::new();
    let reads_what_is_ours = |arguments: &[&str], expected: bool| {
        let output = home.run(arguments);
        assert_eq!(stderr(&output).contains("'listen' in "), expected, "{arguments:?}: {}", stderr(&output));
    };
    let agent =
        [&["agent", "--inbox", "none", "--prompt", "echo x", "--"], &[binary(), "fake-agent"][..]].concat();
    let commands: [&[&str]; 7] = [
        &["doctor"],
        &agent,
        &["ask", "Deploy?", "--choice", "yes"],
        &["mcp", "--", "true"],
        &["inbox", "list"],
        &["token", "list"],
        // Ends at once, because this is no directory.
        &["up", "--no-open", "--data-dir", "/dev/null/data"],
    ];
    for name in
        ["handraise.toml", ".handraise.toml", ".config/handraise/handraise.toml", ".handraise/handraise.toml"]
    {
        let path = home.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, HOSTILE).unwrap();
    }
    for command in commands {
        reads_what_is_ours(command, false);
    }
    // Where it is ours, every one of them reads it.
    home.write_config(HOSTILE);
    for command in commands {
        reads_what_is_ours(command, true);
    }
}

#[test]
fn a_config_file_with_secrets_that_others_can_read_is_told_by_every_command() {
    let home = Home::new();
    let hash = "a".repeat(64);
    home.write_config(&format!(
        "upstream.headers = {{ Authorization = 'Bearer s3cr3t' }}\n[[caller]]\nname = 'ada'\ntoken_hash = 'sha256:{hash}'\n"
    ));
    let path = home.path().join(".config/handraise/handraise.toml");
    let told = |mode: u32, arguments: &[&str]| {
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let output = home.run(arguments);
        let said = stderr(&output) + &String::from_utf8(output.stdout).unwrap();
        assert!(!said.contains("s3cr3t") && !said.contains(&hash), "{said}");
        let expected = format!(
            "has upstream.headers, [[caller]] token_hash and can be read by others (mode {mode:04o}); take that away: chmod go= {}",
            path.display()
        );
        said.contains(&expected)
    };
    for command in [&["mcp", "--", "true"][..], &["doctor"]] {
        assert!(told(0o644, command) && told(0o640, command) && told(0o604, command), "{command:?}");
        assert!(!told(0o600, command) && !told(0o400, command), "{command:?}");
    }
    // Others may read what is no secret.
    home.write_config("elicitation = 'off'\n");
    let output = home.run(&["mcp", "--", "true"]);
    assert!(!stderr(&output).contains("read by others"), "{}", stderr(&output));
}

#[test]
fn a_private_key_that_others_can_read_is_told() {
    let home = Home::new();
    let key = home.path().join("key.pem");
    std::fs::write(&key, "no key").unwrap();
    let told = |mode: u32, arguments: &[&str]| {
        std::fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
        let output = home.run(arguments);
        let said = stderr(&output) + &String::from_utf8(output.stdout).unwrap();
        let remedy = format!("(mode {mode:04o}); take that away: chmod go= {}", key.display());
        said.contains(&format!("the private key {} can be read by others {remedy}", key.display()))
    };
    let path = key.to_str().unwrap();
    let listens = ["mcp", "--listen", "127.0.0.1:0", "--tls-cert", path, "--tls-key", path, "--", "true"];
    home.write_config(&format!("tls_key = '{path}'\n"));
    for command in [&listens[..], &["doctor"]] {
        assert!(told(0o644, command) && told(0o640, command) && told(0o604, command), "{command:?}");
        assert!(!told(0o600, command) && !told(0o400, command), "{command:?}");
    }
}

#[test]
fn a_config_file_is_read_from_the_flag_the_variable_and_the_xdg_directory() {
    let home = Home::new();
    let elsewhere = home.path().join("elsewhere.toml");
    std::fs::write(&elsewhere, HOSTILE).unwrap();
    let elsewhere = elsewhere.to_str().unwrap();
    let expected = "'listen' in ";
    let by_flag = home.run(&["doctor", "--config", elsewhere]);
    assert!(stderr(&by_flag).contains(expected), "{}", stderr(&by_flag));
    let by_variable = home.handraise(&["doctor"]).env("HANDRAISE_CONFIG", elsewhere).output().unwrap();
    assert!(stderr(&by_variable).contains(expected), "{}", stderr(&by_variable));
    home.write_config(HOSTILE);
    let by_place = home.run(&["doctor"]);
    assert!(stderr(&by_place).contains(expected), "{}", stderr(&by_place));
}

#[test]
fn s2_a_config_file_that_others_can_write_is_refused() {
    let home = Home::new();
    home.write_config("log = 'info'\n");
    let path = home.path().join(".config/handraise/handraise.toml");
    assert!(home.run(&["doctor"]).status.success());
    for mode in [0o664, 0o646] {
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let output = home.run(&["doctor"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("chmod go-w"), "{}", stderr(&output));
    }
}

#[test]
fn s2_a_config_file_that_is_a_fifo_is_refused_at_once() {
    let home = Home::new();
    let fifo = home.path().join("fifo.toml");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let output = home.run(&["doctor", "--config", fifo.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("regular file"), "{}", stderr(&output));
}

#[test]
fn a_named_config_file_that_is_not_there_is_an_error() {
    let output = Home::new().run(&["doctor", "--config", "nowhere.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot read the config file nowhere.toml"), "{}", stderr(&output));
}

#[test]
fn f13a_no_command_starts_with_an_answer_timeout_that_is_not_below_the_idle_timeout() {
    let home = Home::new();
    for command in [&["up", "--no-open"][..], &["agent", "--", "true"], &["doctor"]] {
        let output =
            home.handraise(command).env("HANDRAISE_ELICITATION_ANSWER_TIMEOUT", "1h").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        assert!(stderr(&output).contains("must be shorter than the idle timeout"), "{}", stderr(&output));
    }
}

#[test]
fn s42_what_an_error_quotes_moves_no_terminal() {
    let home = Home::new();
    home.write_config("\"a\\u001b[2J\\u202e\" = 1\n");
    let output = home.run(&["doctor"]);
    let said = stderr(&output);
    assert!(said.contains("\\u{1b}[2J\\u{202e}"), "{said}");
    let hazardous = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!said.contains(hazardous), "{said:?}");
}

#[test]
fn an_unknown_key_is_an_error_that_says_what_was_meant() {
    let home = Home::new();
    home.write_config("[acp]\nanswer_timout = '5m'\n");
    let output = home.run(&["doctor"]);
    assert!(stderr(&output).contains("did you mean 'acp.answer_timeout'?"), "{}", stderr(&output));
}

#[test]
fn logs_are_json_where_they_are_asked_to_be() {
    let home = Home::new();
    let output =
        home.handraise(&["doctor", "--log-format", "json"]).env("HANDRAISE_INBX", "x").output().unwrap();
    let text = stderr(&output);
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(line["level"], "WARN");
    assert!(line["message"].as_str().unwrap().contains("HANDRAISE_INBOX"), "{text}");
    let output = home.run(&["doctor", "--log", "info,=,"]);
    assert!(stderr(&output).contains("--log is \"info,=,\""), "{}", stderr(&output));
}

#[test]
fn the_last_error_of_a_command_is_a_line_as_the_logs_are() {
    let home = Home::new();
    let told = |arguments: &[&str], variables: &[(&str, &str)]| {
        let variables = variables.iter().copied();
        let output = home.handraise(arguments).envs(variables).output().unwrap();
        let text = stderr(&output);
        let line: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).expect(&text);
        assert_eq!((&line["level"], &line["target"]), (&"ERROR".into(), &"handraise_cli".into()), "{text}");
        assert!(line["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{text}");
        assert!(!text.contains("error: "), "{text}");
        (line["message"].as_str().unwrap().to_owned(), output.status.code())
    };
    // Whatever is logged.
    let quiet = ["up", "--listen", "192.0.2.1:80", "--log-format", "json", "--log", "off"];
    let (message, status) = told(&quiet, &[]);
    assert!(message.contains("192.0.2.1:80") && status == Some(1), "{message}");
    // Before the settings were read, as far as it is known then.
    let named = [("HANDRAISE_LOG_FORMAT", "json")];
    let (message, status) = told(&["inbox", "list", "--config", "/not/there.toml"], &named);
    assert!(message.contains("/not/there.toml") && status == Some(1), "{message}");
    // Where a command has its own statuses.
    let (message, status) = told(&["mcp", "--", "no-such\u{202e}-server"], &named);
    assert!(message.contains("cannot start the MCP server") && status == Some(127), "{message}");
    home.write_config("log_format = 'json'\n");
    let (message, _) = told(&["ask", "Go?", "--text", "--inbox", "none"], &[]);
    assert!(message.contains("nobody can be asked"), "{message}");
    let output = home.run(&["ask", "Go?", "--text", "--inbox", "none", "--log-format", "text"]);
    assert!(stderr(&output).starts_with("error: "), "{}", stderr(&output));
}

#[test]
fn s2_a_config_file_that_is_there_and_cannot_be_read_is_no_absent_one() {
    let home = Home::new();
    let (folder, file) = (home.path().join(".config"), home.path().join(".config/handraise/handraise.toml"));
    let refused = |expected: &str| {
        for command in [&["doctor"][..], &["mcp", "--", "true"]] {
            let output = home.run(command);
            assert_eq!(output.status.code(), Some(1), "{command:?}");
            assert!(stderr(&output).contains(expected), "{command:?}: {}", stderr(&output));
        }
    };
    symlink("nowhere", &folder).unwrap();
    refused(&format!("{} is a link to something that is not there", folder.display()));
    std::fs::create_dir(home.path().join("nowhere")).unwrap();
    assert!(home.run(&["doctor"]).status.success(), "a link to a folder without the file");
    std::fs::create_dir(folder.join("handraise")).unwrap();
    symlink("/nowhere/confirm.toml", &file).unwrap();
    refused(&format!("{} is a link to something that is not there; mend or remove the link", file.display()));
    std::fs::remove_file(&file).unwrap();
    symlink("handraise.toml", &file).unwrap();
    refused(&format!("cannot read the config file {}: ", file.display()));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    refused("is not a regular file");
}

/// An unset variable of a shell gives an empty one.
#[test]
fn an_empty_state_secret_refuses_the_start_of_every_gateway() {
    let home = Home::new();
    let (listening, url) = (["--listen", "127.0.0.1:0"], ["--upstream", "http://127.0.0.1:9/mcp"]);
    for arguments in
        [&["--", "true"][..], &url, &[&listening[..], &["--", "true"]].concat(), &[listening, url].concat()]
    {
        let says = |output: &std::process::Output, origin: &str| {
            let text = stderr(output);
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
            assert!(
                text.contains(origin) && text.contains("it is empty: give keys"),
                "{arguments:?}: {text}"
            );
        };
        let mut command = home.handraise(&[&["mcp"], arguments].concat());
        says(&command.env("HANDRAISE_STATE_SECRET", "").output().unwrap(), "HANDRAISE_STATE_SECRET");
        home.write_config("state_secret = ''\n");
        says(&home.run(&[&["mcp"], arguments].concat()), "state_secret");
        home.write_config("");
    }
}
