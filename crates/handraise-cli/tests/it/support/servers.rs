//! Scripted MCP servers that listen.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    sync::Mutex,
};

use serde_json::Value;

use super::{Home, kill};

/// Running servers and their URLs, by their arguments. They end with the home.
#[derive(Debug, Default)]
pub(crate) struct Servers(Mutex<BTreeMap<String, (Child, String)>>);

impl Home {
    /// The URL of the scripted server with these arguments, which is started when it does not run.
    pub(crate) fn server(&self, arguments: &[&str]) -> String {
        let file = |name: &str| self.path().join(name).to_str().unwrap().to_owned();
        let (calls, record, requests) = (file("calls"), file("record"), file("requests"));
        let fixed = ["fake-server", "--http", "127.0.0.1:0", "--calls", &calls];
        let files = ["--record", &record, "--requests", &requests];
        self.listening(&[&fixed[..], &files, arguments].concat(), &[])
    }

    /// The URL of a gateway in front of that server, which passes everything on and asks nothing.
    pub(crate) fn listener(&self, arguments: &[&str]) -> String {
        let url = self.server(arguments);
        let command = ["mcp", "--listen", "127.0.0.1:0", "--upstream", &url];
        self.listening(&command, &[("HANDRAISE_ELICITATION", "off")])
    }

    /// The URL of a gateway in front of that server, over TLS.
    pub(crate) fn listener_with_tls(&self, certificate: &str, key: &str) -> String {
        let url = self.server(&[]);
        let listen = ["mcp", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key];
        self.listening(&[&listen[..], &["--upstream", &url]].concat(), &[])
    }

    /// The first line of a command that is started when it does not run: its URL.
    fn listening(&self, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let mut servers = self.servers.0.lock().unwrap();
        let server = servers.entry(arguments.join(" ")).or_insert_with(|| {
            let mut command = self.handraise(arguments);
            command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let mut url = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
            (child, url.trim_end().to_owned())
        });
        server.1.clone()
    }

    /// Every HTTP request that scripted servers have got: `method`, `headers`, `body`.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path().join("requests")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Ends every scripted server at once.
    pub(crate) fn kill_servers(&self) {
        for (mut child, _) in std::mem::take(&mut *self.servers.0.lock().unwrap()).into_values() {
            kill(child.id());
            let _ = child.wait();
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for (child, _) in self.0.get_mut().unwrap().values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
