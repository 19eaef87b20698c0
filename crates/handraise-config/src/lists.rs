//! The lists of the config file: `[[agent]]`, `[[caller]]`, `[[confirm]]`, `[[mcp_server]]` and `[[refusal]]`, and tables
//! with names of the user's own.

mod confirm;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use toml::{Table, Value};

use crate::{
    error::ConfigError,
    file::{ConfigFile, closest},
    value::{Secret, absolute, strings},
};

pub(crate) use confirm::confirms;
pub use confirm::{ConfirmEntry, PreviewEntry, Require, Who};

/// The lists that a config file may have.
pub(crate) const NAMES: &[&str] = &["agent", "caller", "confirm", "mcp_server", "refusal"];

/// Tables of the config file whose keys are names of the user's own.
pub(crate) const TABLES: &[&str] = &[UPSTREAM_HEADERS];

const UPSTREAM_HEADERS: &str = "upstream.headers";

/// `[[agent]]`: an agent that `handraise up` starts itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEntry {
    /// What it is called, e.g. `claude-acp`.
    pub id: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it runs unless the request says otherwise.
    pub cwd: Option<PathBuf>,
}

/// `[[mcp_server]]`: an MCP server that agents are told of in `session/new`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerEntry {
    /// What it is called.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// The agent starts it.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// Its environment.
        env: BTreeMap<String, Secret>,
    },
    /// The agent connects to it.
    Http {
        /// Its address.
        url: String,
        /// Headers for every request.
        headers: BTreeMap<String, Secret>,
    },
}

/// `[[caller]]`: somebody who may use `handraise mcp --listen` (S10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerEntry {
    /// What it is called: the principal of its requests.
    pub name: String,
    /// The SHA-256 of its token, which is nowhere else.
    pub token_sha256: [u8; 32],
}

/// `[[refusal]]`: a tool's refusal that becomes a question. The names of paths and templates are judged by whoever uses
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalEntry {
    /// What it is called. A built-in one of that name is replaced.
    pub name: String,
    /// What it looks like; `None` with `enabled = false`: it becomes no question.
    pub rule: Option<RefusalRule>,
}

/// What a refusal looks like, and what is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalRule {
    /// The code that it carries.
    pub code: String,
    /// JSON pointers to the code.
    pub code_at: Vec<String>,
    /// JSON pointers to the candidates.
    pub candidates_at: Vec<String>,
    /// A JSON pointer into a candidate, to the value.
    pub value: String,
    /// What a human reads for a candidate.
    pub title: String,
    /// The argument that the choice fills.
    pub argument: String,
    /// What a human is asked.
    pub message: String,
    /// A read-only tool that lists the candidates afresh, and JSON pointers into its result.
    pub candidates_tool: Option<(String, Vec<String>)>,
}

/// The longest id or name, in bytes.
const LONGEST_NAME: usize = 64;

pub(crate) fn agents(file: &ConfigFile, home: Option<&Path>) -> Result<Vec<AgentEntry>, ConfigError> {
    let mut seen = BTreeSet::new();
    entries(file, "agent", "id", &["id", "command", "cwd"])?
        .into_iter()
        .map(|entry| {
            let id = entry.name("id", &mut seen)?;
            let command = entry.command()?;
            let cwd = match entry.table.get("cwd") {
                None => None,
                Some(value) => {
                    let text = value.as_str().ok_or_else(|| entry.error("cwd takes a path in quotes"))?;
                    Some(absolute(text, home).map_err(|problem| entry.error(format!("cwd: {problem}")))?)
                }
            };
            Ok(AgentEntry { id, command, cwd })
        })
        .collect()
}

pub(crate) fn callers(file: &ConfigFile) -> Result<Vec<CallerEntry>, ConfigError> {
    let mut seen = BTreeSet::new();
    let mut hashes = BTreeSet::new();
    entries(file, "caller", "name", &["name", "token_hash"])?
        .into_iter()
        .map(|entry| {
            let name = entry.name("name", &mut seen)?;
            let hash = entry.table.get("token_hash").and_then(Value::as_str).and_then(sha256);
            let token_sha256 = hash.ok_or_else(|| {
                entry.error(
                    "token_hash takes \"sha256:\" and the 64 hexadecimal digits of the token's SHA-256",
                )
            })?;
            if !hashes.insert(token_sha256) {
                return Err(
                    entry.error("token_hash is that of a caller before it: nobody could tell them apart")
                );
            }
            Ok(CallerEntry { name, token_sha256 })
        })
        .collect()
}

/// Reads `sha256:<64 hexadecimal digits>`.
fn sha256(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("sha256:")?;
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

pub(crate) fn mcp_servers(file: &ConfigFile) -> Result<Vec<McpServerEntry>, ConfigError> {
    let mut seen = BTreeSet::new();
    entries(file, "mcp_server", "name", &["name", "command", "env", "url", "headers"])?
        .into_iter()
        .map(|entry| {
            let name = entry.name("name", &mut seen)?;
            let transport = match (entry.table.get("url"), entry.table.get("command")) {
                (None, Some(_)) if !entry.table.contains_key("headers") => {
                    McpTransport::Stdio { command: entry.command()?, env: entry.pairs("env")? }
                }
                (Some(Value::String(url)), None) if !entry.table.contains_key("env") => {
                    if !url.starts_with("https://") && !url.starts_with("http://") {
                        return Err(entry.error("url takes an http:// or https:// URL"));
                    }
                    McpTransport::Http { url: url.clone(), headers: entry.pairs("headers")? }
                }
                _ => return Err(entry.error("give either command and env, or url and headers")),
            };
            Ok(McpServerEntry { name, transport })
        })
        .collect()
}

pub(crate) fn refusals(file: &ConfigFile) -> Result<Vec<RefusalEntry>, ConfigError> {
    const KEYS: &[&str] = &[
        "name",
        "enabled",
        "code",
        "code_at",
        "candidates_at",
        "value",
        "title",
        "argument",
        "message",
        "candidates_tool",
    ];
    let mut seen = BTreeSet::new();
    entries(file, "refusal", "name", KEYS)?
        .into_iter()
        .map(|entry| {
            let name = entry.name("name", &mut seen)?;
            let enabled = match entry.table.get("enabled") {
                None => true,
                Some(value) => value.as_bool().ok_or_else(|| entry.error("enabled takes true or false"))?,
            };
            if !enabled {
                return Ok(RefusalEntry { name, rule: None });
            }
            let candidates_tool = match entry.table.get("candidates_tool") {
                None => None,
                Some(value) => Some(candidates_tool(value).ok_or_else(|| {
                    entry.error(
                        "candidates_tool takes { name = \"listDevices\", candidates_at = [\"/devices\"] }",
                    )
                })?),
            };
            let rule = RefusalRule {
                code: entry.text("code")?,
                code_at: entry.paths("code_at")?,
                candidates_at: entry.paths("candidates_at")?,
                value: entry.text("value")?,
                title: entry.text("title")?,
                argument: entry.text("argument")?,
                message: entry.text("message")?,
                candidates_tool,
            };
            Ok(RefusalEntry { name, rule: Some(rule) })
        })
        .collect()
}

/// `[upstream] headers`: what every request to `--upstream` carries.
pub(crate) fn upstream_headers(file: &ConfigFile) -> Result<BTreeMap<String, Secret>, ConfigError> {
    let Some(value) = file.value(UPSTREAM_HEADERS) else { return Ok(BTreeMap::new()) };
    pairs(value).ok_or_else(|| ConfigError::Table {
        path: file.path().to_owned(),
        table: UPSTREAM_HEADERS,
        expected: "takes names with text, such as { Authorization = \"Bearer …\" }",
    })
}

/// Names with text.
fn pairs(value: &Value) -> Option<BTreeMap<String, Secret>> {
    let pair = |(name, value): (&String, &Value)| Some((name.clone(), Secret::new(value.as_str()?)));
    value.as_table()?.iter().map(pair).collect()
}

fn candidates_tool(value: &Value) -> Option<(String, Vec<String>)> {
    let table = value.as_table().filter(|table| table.len() == 2)?;
    Some((table.get("name")?.as_str()?.to_owned(), strings(table.get("candidates_at")?)?))
}

/// One table of a list.
struct Entry<'a> {
    file: &'a Path,
    list: &'static str,
    shown: String,
    table: &'a Table,
}

/// The tables of a list; refuses unknown keys in them.
fn entries<'a>(
    file: &'a ConfigFile,
    list: &'static str,
    name_key: &str,
    keys: &[&str],
) -> Result<Vec<Entry<'a>>, ConfigError> {
    let Some(value) = file.list(list) else { return Ok(Vec::new()) };
    let not_a_list = || ConfigError::Entry {
        path: file.path().to_owned(),
        list,
        entry: String::new(),
        problem: format!("is a list: write [[{list}]] with two brackets"),
    };
    let items = value.as_array().ok_or_else(not_a_list)?;
    items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let table = item.as_table().ok_or_else(not_a_list)?;
            let shown = match table.get(name_key).and_then(Value::as_str) {
                Some(name) => format!("{name:?}"),
                None => format!("number {}", index + 1),
            };
            let entry = Entry { file: file.path(), list, shown, table };
            if let Some(key) = table.keys().find(|key| !keys.contains(&key.as_str())) {
                let hint = closest(key, keys.iter().copied()).map_or_else(
                    || format!("it takes {}", keys.join(", ")),
                    |key| format!("did you mean '{key}'?"),
                );
                return Err(entry.error(format!("has no key '{key}'; {hint}")));
            }
            Ok(entry)
        })
        .collect()
}

impl Entry<'_> {
    fn error(&self, problem: impl Into<String>) -> ConfigError {
        ConfigError::Entry {
            path: self.file.to_owned(),
            list: self.list,
            entry: self.shown.clone(),
            problem: problem.into(),
        }
    }

    fn name(&self, key: &'static str, seen: &mut BTreeSet<String>) -> Result<String, ConfigError> {
        let name = self.table.get(key).and_then(Value::as_str).unwrap_or_default();
        let fits = (1..=LONGEST_NAME).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !fits {
            return Err(
                self.error(format!("{key} takes 1 to {LONGEST_NAME} letters, digits, '-', '_' or '.'"))
            );
        }
        if !seen.insert(name.to_owned()) {
            return Err(self.error(format!("{key} is taken by an entry before it")));
        }
        Ok(name.to_owned())
    }

    fn text(&self, key: &'static str) -> Result<String, ConfigError> {
        let text = self.table.get(key).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| self.error(format!("{key} is missing, or no text in quotes")))
    }

    fn paths(&self, key: &'static str) -> Result<Vec<String>, ConfigError> {
        let paths = self.table.get(key).and_then(strings);
        paths.ok_or_else(|| self.error(format!("{key} takes a list of JSON pointers, such as [\"/code\"]")))
    }

    fn command(&self) -> Result<Vec<String>, ConfigError> {
        let command = self.table.get("command").and_then(strings).filter(|words| {
            words.first().is_some_and(|program| !program.is_empty())
                && words.iter().all(|w| !w.contains('\0'))
        });
        command.ok_or_else(|| {
            self.error("command takes a list: the program, then its arguments, such as [\"npx\", \"-y\", \"some-agent\"]")
        })
    }

    fn pairs(&self, key: &'static str) -> Result<BTreeMap<String, Secret>, ConfigError> {
        let Some(value) = self.table.get(key) else { return Ok(BTreeMap::new()) };
        pairs(value)
            .ok_or_else(|| self.error(format!("{key} takes names with text, such as {{ NAME = \"value\" }}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Vec<AgentEntry>, Vec<McpServerEntry>), String> {
        let file = ConfigFile::parse("/h.toml", text).map_err(|error| error.to_string())?;
        let agents = agents(&file, Some(Path::new("/home/ada"))).map_err(|error| error.to_string())?;
        Ok((agents, mcp_servers(&file).map_err(|error| error.to_string())?))
    }

    #[test]
    fn agents_and_servers_are_read_in_order() {
        let (agents, servers) = read(
            "[[agent]]\nid = 'claude-acp'\ncommand = ['npx', 'claude-agent-acp']\ncwd = '~/src'\n\
             [[agent]]\nid = 'other'\ncommand = ['/opt/other']\n\
             [[mcp_server]]\nname = 'files'\ncommand = ['mcp-files']\nenv = { KEY = 'hunter2' }\n\
             [[mcp_server]]\nname = 'web'\nurl = 'https://mcp.example/'\nheaders = { Authorization = 'Bearer hunter2' }\n",
        )
        .unwrap();
        assert_eq!(agents.len(), 2);
        assert_eq!(agents[0].cwd.as_deref(), Some(Path::new("/home/ada/src")));
        assert_eq!(servers.len(), 2);
        assert!(!format!("{servers:?}").contains("hunter2"));
    }

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        assert_eq!(read(text).unwrap_err(), expected);
    }

    const REFUSAL: &str = "[[refusal]]\nname = 'which_table'\ncode = 'ambiguous'\ncode_at = ['/code']\n\
         candidates_at = ['/tables']\nvalue = '/name'\ntitle = '{name}'\nargument = 'table'\nmessage = 'Which?'\n";

    fn read_refusals(text: &str) -> Result<Vec<RefusalEntry>, String> {
        let file = ConfigFile::parse("/h.toml", text).map_err(|error| error.to_string())?;
        refusals(&file).map_err(|error| error.to_string())
    }

    #[test]
    fn s10_callers_are_known_by_the_hash_of_their_token() {
        let read = |text: &str| {
            let file = ConfigFile::parse("/h.toml", text).map_err(|error| error.to_string())?;
            callers(&file).map_err(|error| error.to_string())
        };
        let (one, other) = ("0f".repeat(32), "F0".repeat(32));
        let caller = |name: &str, hash: &str| format!("[[caller]]\nname = '{name}'\ntoken_hash = '{hash}'\n");
        let callers =
            read(&(caller("ada", &format!("sha256:{one}")) + &caller("bob", &format!("sha256:{other}"))));
        let callers = callers.unwrap();
        assert_eq!((&*callers[0].name, callers[0].token_sha256), ("ada", [0x0f; 32]));
        assert_eq!((&*callers[1].name, callers[1].token_sha256), ("bob", [0xf0; 32]));
        for wrong in ["hunter2", &one, "sha256:", &format!("sha256:{one}0"), "sha256:+f"] {
            let error = read(&caller("ada", wrong)).unwrap_err();
            assert!(error.contains("token_hash takes \"sha256:\"") && !error.contains("hunter2"), "{error}");
        }
        let twice = caller("ada", &format!("sha256:{one}")) + &caller("bob", &format!("sha256:{one}"));
        assert!(read(&twice).unwrap_err().contains("\"bob\": token_hash is that of a caller before it"));
        assert!(read("[[caller]]\nname = 'a'\ntoken = 'x'\n").unwrap_err().contains("token"));
    }

    #[test]
    fn headers_of_the_upstream_are_read_and_not_shown() {
        let read = |text: &str| {
            let file = ConfigFile::parse("/h.toml", text).map_err(|error| error.to_string())?;
            upstream_headers(&file).map_err(|error| error.to_string())
        };
        let headers =
            read("[upstream]\nheaders = { Authorization = 'Bearer hunter2', X-Team = 'a' }").unwrap();
        assert_eq!(headers["Authorization"].expose(), "Bearer hunter2");
        assert_eq!(headers.len(), 2);
        assert!(!format!("{headers:?}").contains("hunter2"));
        assert_eq!(read("[upstream.headers]\nX-Team = 'a'").unwrap().len(), 1);
        assert!(read("").unwrap().is_empty());
        for wrong in ["headers = 'hunter2'", "headers = { A = 7 }", "headers = ['a']"] {
            let error = read(&format!("[upstream]\n{wrong}")).unwrap_err();
            assert!(error.starts_with("/h.toml, upstream.headers takes names with text"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = read("[upstream]\nheader = {}").unwrap_err();
        assert!(error.ends_with("did you mean 'upstream.headers'?"), "{error}");
    }

    #[test]
    fn refusals_are_read_in_order_and_one_can_be_switched_off() {
        let text = format!(
            "{REFUSAL}candidates_tool = {{ name = 'list', candidates_at = ['/all'] }}\n\
             [[refusal]]\nname = 'ambiguous_device_target'\nenabled = false\n"
        );
        let read = read_refusals(&text).unwrap();
        assert_eq!(read[0].name, "which_table");
        let rule = read[0].rule.as_ref().unwrap();
        assert_eq!(rule.candidates_tool, Some(("list".to_owned(), vec!["/all".to_owned()])));
        let off = RefusalEntry { name: "ambiguous_device_target".to_owned(), rule: None };
        assert_eq!(read[1], off);
    }

    #[test]
    fn a_wrong_refusal_is_named_with_its_remedy() {
        for (from, to, expected) in [
            ("code = 'ambiguous'\n", "", "code is missing, or no text in quotes"),
            ("['/code']", "'/code'", "code_at takes a list of JSON pointers, such as [\"/code\"]"),
            ("name = 'which_table'", "name = 'which_table'\nenabled = 'no'", "enabled takes true or false"),
            ("argument = ", "argumnet = ", "has no key 'argumnet'; did you mean 'argument'?"),
        ] {
            let error = read_refusals(&REFUSAL.replace(from, to)).unwrap_err();
            assert_eq!(error, format!("/h.toml, [[refusal]] \"which_table\": {expected}"));
        }
    }

    #[test]
    fn a_wrong_entry_is_named_with_its_remedy() {
        check_error(
            "[[agent]]\nid = 'a'\ncommand = 'npx agent'",
            "/h.toml, [[agent]] \"a\": command takes a list: the program, then its arguments, such as [\"npx\", \"-y\", \"some-agent\"]",
        );
        check_error(
            "[[agent]]\ncommand = ['x']",
            "/h.toml, [[agent]] number 1: id takes 1 to 64 letters, digits, '-', '_' or '.'",
        );
        check_error(
            "[[agent]]\nid = 'a'\ncommand = ['x']\n[[agent]]\nid = 'a'\ncommand = ['x']",
            "/h.toml, [[agent]] \"a\": id is taken by an entry before it",
        );
        check_error(
            "[[agent]]\nid = 'a'\ncomand = ['x']",
            "/h.toml, [[agent]] \"a\": has no key 'comand'; did you mean 'command'?",
        );
        check_error(
            "[[agent]]\nid = 'a'\ncommand = ['x']\ncwd = 'src'",
            "/h.toml, [[agent]] \"a\": cwd: it takes an absolute path, or one that begins with ~/",
        );
        check_error("[agent]\nid = 'a'", "/h.toml, [[agent]] : is a list: write [[agent]] with two brackets");
        check_error(
            "[[mcp_server]]\nname = 'a'\nurl = 'https://x/'\ncommand = ['x']",
            "/h.toml, [[mcp_server]] \"a\": give either command and env, or url and headers",
        );
    }
}
