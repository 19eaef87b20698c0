//! Agents and servers, in order and in error.

use std::path::Path;

use super::{AgentEntry, McpServerEntry, agents, mcp_servers};
use crate::file::ConfigFile;

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

#[test]
fn a_wrong_entry_is_named_with_its_remedy() {
    check_error(
        "[[agent]]\nid = 'a'\ncommand = 'npx agent'",
        "/h.toml:1, [[agent]] \"a\": command takes a list: the program, then its arguments, such as [\"npx\", \"-y\", \"some-agent\"]",
    );
    check_error(
        "[[agent]]\ncommand = ['x']",
        "/h.toml:1, [[agent]] number 1: id takes 1 to 64 letters, digits, '-', '_' or '.'",
    );
    check_error(
        "[[agent]]\nid = 'a'\ncommand = ['x']\n[[agent]]\nid = 'a'\ncommand = ['x']",
        "/h.toml:4, [[agent]] \"a\": id is taken by an entry before it",
    );
    check_error(
        "[[agent]]\nid = 'a'\ncomand = ['x']",
        "/h.toml:3, [[agent]] \"a\": has no key 'comand'; did you mean 'command'?",
    );
    check_error(
        "[[agent]]\nid = 'a'\ncommand = ['x']\ncwd = 'src'",
        "/h.toml:1, [[agent]] \"a\": cwd: it takes an absolute path, or one that begins with ~/",
    );
    check_error("[agent]\nid = 'a'", "/h.toml:1, [[agent]] : is a list: write [[agent]] with two brackets");
    check_error(
        "[[mcp_server]]\nname = 'a'\nurl = 'https://x/'\ncommand = ['x']",
        "/h.toml:1, [[mcp_server]] \"a\": give either command and env, or url and headers",
    );
}
