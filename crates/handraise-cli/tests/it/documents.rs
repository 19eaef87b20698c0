//! What the documents show: commands are commands, links lead somewhere, settings exist.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A document of the project.
struct Document {
    path: PathBuf,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every Markdown file at the root, and below docs and examples.
fn documents() -> Vec<Document> {
    let mut documents = Vec::new();
    let below = ["docs", "examples"].map(|folder| root().join(folder));
    let mut folders = vec![root()];
    folders.extend(below.clone());
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && below.iter().any(|below| folder.starts_with(below)) {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = std::fs::read_to_string(&path).unwrap();
                documents.push(Document { path, text });
            }
        }
    }
    assert!(documents.len() >= 10, "README.md, docs and the others");
    documents
}

/// The commands in a document's shell blocks, with lines that end in a backslash joined.
fn commands(document: &Document) -> Vec<String> {
    let mut commands = Vec::new();
    let mut in_shell = false;
    let mut open = String::new();
    for line in document.text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            in_shell = !in_shell && matches!(language, "sh" | "bash" | "console");
        } else if in_shell {
            open.push_str(line.trim().trim_start_matches("$ "));
            if open.ends_with('\\') {
                open.pop();
            } else {
                commands.push(std::mem::take(&mut open));
            }
        }
    }
    commands.retain(|command| !command.is_empty() && !command.starts_with('#'));
    commands
}

/// The words of a shell command up to a pipe, redirection or `&&`, without variables set before it.
fn words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut is_open = false;
    for character in command.chars() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (Some(_), inner) => word.push(inner),
            (None, '"' | '\'') => {
                quote = Some(character);
                is_open = true;
            }
            (None, '|' | '>' | '&' | ';' | '#') if !is_open => break,
            (None, ' ') => {
                if is_open {
                    words.push(std::mem::take(&mut word));
                }
                is_open = false;
            }
            (None, other) => {
                word.push(other);
                is_open = true;
            }
        }
    }
    assert_eq!(quote, None, "an open quote in {command:?}");
    if is_open {
        words.push(word);
    }
    let is_variable = |word: &String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
    };
    words.into_iter().skip_while(is_variable).collect()
}

#[test]
fn every_command_shown_is_one() {
    const TASKS: &[&str] = &["test", "demo", "tidy", "generate", "ui", "bench", "peers", "soak"];
    let mut shown = 0;
    for document in documents() {
        for command in commands(&document) {
            let words = words(&command);
            let place = document.path.display();
            match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                ["handraise", ..] => {
                    shown += 1;
                    if let Err(error) = handraise_cli::command().try_get_matches_from(&words) {
                        let asks_for_help = matches!(
                            error.kind(),
                            clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion
                        );
                        assert!(asks_for_help, "{place}: {command}\n{error}");
                    }
                }
                ["cargo", "xtask", task, ..] => assert!(TASKS.contains(task), "{place}: {command}"),
                _ => {}
            }
        }
    }
    assert!(shown >= 20, "only {shown} commands were found");
}

/// The commands that the config files of a document start, as their programs read them.
fn configured(document: &Document) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let words = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    for block in document.text.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        if !block.contains("handraise") {
            continue;
        }
        let config: Value = serde_json::from_str(block)
            .unwrap_or_else(|error| panic!("{}: {error}\n{block}", document.path.display()));
        let mut values = vec![&config];
        while let Some(value) = values.pop() {
            match &value["command"] {
                Value::String(command) if command == "handraise" => {
                    found.push([vec![command.clone()], words(&value["args"])].concat());
                }
                Value::Array(_) => found.push(words(&value["command"])),
                _ => {}
            }
            values.extend(value.as_object().into_iter().flat_map(|object| object.values()));
        }
    }
    // Lists of texts are written alike in both.
    for block in document.text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        if block.contains("command = \"handraise\"") {
            let list = block.lines().find_map(|line| line.strip_prefix("args = ")).expect("arguments");
            found.push([vec!["handraise".to_owned()], words(&serde_json::from_str(list).unwrap())].concat());
        }
    }
    found
}

#[test]
fn every_config_file_shown_for_a_client_starts_a_gateway() {
    let mut shown = 0;
    for document in documents() {
        for command in configured(&document) {
            let parsed = handraise_cli::command().try_get_matches_from(&command);
            let matches = parsed.unwrap_or_else(|error| panic!("{}: {error}", document.path.display()));
            assert_eq!(matches.subcommand_name(), Some("mcp"), "{command:?}");
            shown += 1;
        }
    }
    assert!(shown >= 4, "Claude Code, Codex, VS Code and opencode, and only {shown} were found");
}

/// What the headings of a document are linked by.
fn anchors(text: &str) -> Vec<String> {
    let mut in_block = false;
    let mut anchors: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        let heading = line.trim_start_matches('#');
        if in_block || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let same = anchors.iter().filter(|other| **other == anchor).count();
        anchors.push(if same == 0 { anchor } else { format!("{anchor}-{same}") });
    }
    anchors
}

#[test]
fn every_link_within_the_project_leads_somewhere() {
    for document in documents() {
        let folder = document.path.parent().unwrap();
        for target in document.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { document.path.clone() } else { folder.join(path) };
            assert!(file.exists(), "{}: {target} leads nowhere", document.path.display());
            if !heading.is_empty() && file.extension().is_some_and(|extension| extension == "md") {
                let anchors = anchors(&std::fs::read_to_string(&file).unwrap());
                let place = document.path.display();
                assert!(anchors.iter().any(|anchor| anchor == heading), "{place}: {target} is no heading");
            }
        }
    }
}

#[test]
fn every_variable_named_is_a_setting() {
    let known: Vec<String> = handraise_config::registry::SETTINGS
        .iter()
        .flat_map(|setting| setting.variables())
        .chain(["HANDRAISE_CONFIG".to_owned(), "HANDRAISE_".to_owned(), "HANDRAISE_BIN".to_owned()])
        .collect();
    for document in documents() {
        for (at, _) in document.text.match_indices("HANDRAISE_") {
            let name: String = document.text[at..]
                .chars()
                .take_while(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '_')
                .collect();
            assert!(known.contains(&name), "{}: {name} is no setting", document.path.display());
        }
    }
}

/// Every test of the project: functions, and titles of the page's tests.
fn test_sources() -> String {
    let mut sources = String::new();
    let mut folders = vec![root().join("crates"), root().join("ui")];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                let name = entry.file_name();
                if name != "node_modules" && name != "page" {
                    folders.push(path);
                }
            } else if path
                .extension()
                .is_some_and(|extension| ["rs", "mjs", "ts"].iter().any(|known| extension == *known))
            {
                sources.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    sources
}

/// The tests that a text names, in backticks, by their file, or by the title of a test of the page; each must exist.
#[track_caller]
fn named_tests<'a>(text: &'a str, sources: &str) -> Vec<&'a str> {
    let is_name = |word: &str| {
        word.matches('_').count() >= 2
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let mut named: Vec<&str> = text.split('`').skip(1).step_by(2).filter(|word| is_name(word)).collect();
    for name in &named {
        assert!(sources.contains(&format!("fn {name}(")), "{name} is no test");
    }
    for file in text.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".test.mjs")) {
        assert!(root().join(file).exists(), "{file} is no file");
        named.push(file);
    }
    for title in text.split('“').skip(1).filter_map(|rest| rest.split('”').next()) {
        assert!(sources.contains(&format!("test(\"{title}\"")), "{title} is no test of the page");
        named.push(title);
    }
    named
}

#[test]
fn every_test_that_security_md_names_exists() {
    let security = std::fs::read_to_string(root().join("SECURITY.md")).unwrap();
    assert!(named_tests(&security, &test_sources()).len() >= 100);
}

/// Numbers that must have a row of their own on the coverage page: they are looked for by who reads about them.
const NUMBERED: &[&str] = &[
    "AC-01", "AC-02", "AC-02a", "AC-03", "AC-04", "AC-04a", "AC-05", "AC-06", "AC-07", "AC-08", "AC-09",
    "AC-10", "AC-11", "AC-11a", "AC-12", "AC-12a", "AC-12b", "AC-12c", "AC-12d", "AC-12e", "AC-12f",
    "AC-12g", "AC-12h", "AC-12i", "AC-12j", "AC-13", "AC-14", "AC-15", "AC-16", "AC-17", "AC-18", "AC-19",
    "AC-20", "AC-20a", "AC-20b", "AC-55", "AC-56", "AC-57", "AC-60", "AC-61", "AC-64", "D1", "D2", "D3",
    "D4", "D5", "F3", "F5", "F6", "F7", "F9", "F10", "F12", "F13a", "S1", "S2", "S7", "S9", "S11", "S15",
    "S16", "S33", "S34", "S35", "S37", "S39", "S40", "S41", "S42", "S43", "S44", "S45",
];

#[test]
fn every_rule_of_the_coverage_page_has_tests_that_exist_or_a_reason() {
    let (page, sources) = (std::fs::read_to_string(root().join("docs/coverage.md")).unwrap(), test_sources());
    let mut rules = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| rule ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [rule, holds, shown] = cells[..] else { panic!("{line} has not three cells") };
        assert!(!holds.is_empty(), "{rule}");
        let is_open = shown.strip_prefix("open: ").is_some_and(|reason| reason.len() > 20);
        assert!(
            is_open || !named_tests(shown, &sources).is_empty(),
            "{rule} has neither a test nor a reason"
        );
        assert!(!rules.contains(&rule), "{rule} stands twice");
        rules.push(rule);
    }
    for number in NUMBERED {
        assert!(rules.contains(number), "{number} has no row");
    }
}
