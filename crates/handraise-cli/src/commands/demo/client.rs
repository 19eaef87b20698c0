//! The demo's MCP client: behind it the gateway and a scripted server, and the inbox in place of a prompt of its own.

use std::{ffi::OsStr, path::Path, time::Duration};

use anyhow::{Context as _, bail};
use handraise_api::{
    ask::Implementation,
    words::{HolderKind, Who},
};
use handraise_core::{
    Mode, OnDeadline, Outcome, Source,
    form::{self, AnswerRules, FormProfile, FormRequest},
};
use handraise_holder::{Delivery, EndCause, Holder, InboxAddress, NewAsk, Token};
use handraise_transport::{
    complaints::Complaints,
    lines::{Line, Lines},
    spawn::{self, Spawn, Supervised, Supervisor},
};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt as _,
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::oneshot,
};

use super::own_path;
use crate::{Context, holding, local};

const NAME: &str = "handraise demo";
/// The scripted server's tool, which refuses to choose a device.
pub(super) const TOOL: &str = "tapOn";
const MAX_LINE: usize = 1024 * 1024;
/// The longest piece of the gateway's stderr that is one line of our log, in bytes.
const MAX_COMPLAINT: usize = 4096;
/// How long the question waits in the inbox. The gateway waits a little longer, so that it hears what became of it.
const PATIENCE: Duration = Duration::from_secs(55 * 60);
const CONFIG: &str = "log = \"warn\"\ninbox = \"none\"\nask.timeout_ms = 3600000\n";

/// How the one call of the demo ended.
pub(super) enum Tapped {
    /// It ran, and this is what the tool says.
    Ran(String),
    /// It did not: the client has the tool's refusal.
    Refused,
}

/// Calls the tool through a gateway and holds its question in the inbox of `inbox_dir`, until the call has ended.
/// The gateway has a config file of its own in `own_dir`: the settings of whoever tries the demo are for their tools.
pub(super) async fn tap(context: &Context, inbox_dir: &Path, own_dir: &Path) -> anyhow::Result<Tapped> {
    let file = local::read(inbox_dir, &context.commands)?.context("the inbox has not said where it is")?;
    let inbox = InboxAddress::Socket(file.socket);
    let settings =
        holding::settings(Who::Operator, HolderKind::Gateway, inbox, Token::new(file.holder_token));
    let holder = Holder::connect(settings).await?;
    let mut client = Client::start(context, own_dir)?;
    let result = client.call(&holder).await.context("the MCP server behind the gateway")?;
    client.end().await;
    holder.shutdown().await;
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    Ok(if result["isError"] == true { Tapped::Refused } else { Tapped::Ran(text.to_owned()) })
}

struct Client {
    gateway: Supervised,
    stdin: ChildStdin,
    lines: Lines<ChildStdout>,
}

impl Client {
    fn start(context: &Context, own_dir: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(own_dir).with_context(|| format!("cannot make {}", own_dir.display()))?;
        let config = own_dir.join("handraise.toml");
        std::fs::write(&config, CONFIG).with_context(|| format!("cannot write {}", config.display()))?;
        let own = own_path()?;
        let variables = context.environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let args = [
            "--config".as_ref(),
            config.as_os_str(),
            "mcp".as_ref(),
            "--".as_ref(),
            own.as_ref(),
            "fake-server".as_ref(),
        ];
        let command = Spawn {
            program: own.clone().into(),
            args: args.map(OsStr::to_owned).into(),
            cwd: Some(own_dir.to_owned()),
            environment: spawn::clean_environment(variables, &[]),
        };
        let mut gateway =
            spawn::spawn(&command, &Supervisor::this_binary()).context("cannot start the gateway")?;
        let (Some(stdin), Some(stdout)) = (gateway.stdin.take(), gateway.stdout.take()) else {
            bail!("the gateway has no pipes");
        };
        if let Some(stderr) = gateway.stderr.take() {
            tokio::spawn(log(stderr));
        }
        Ok(Self { gateway, stdin, lines: Lines::new(stdout, MAX_LINE) })
    }

    /// Opens a session, calls the tool, answers what is asked meanwhile; returns the call's result.
    async fn call(&mut self, holder: &Holder) -> anyhow::Result<Value> {
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {"form": {}}},
            "clientInfo": {"name": NAME, "version": env!("CARGO_PKG_VERSION")},
        });
        let hello = self.request(1, "initialize", hello, holder).await?;
        let server = hello["serverInfo"]["name"].as_str().unwrap_or_default().to_owned();
        tracing::debug!(server, "the gateway's server has introduced itself");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        self.request(2, "tools/call", json!({"name": TOOL, "arguments": {"text": "OK"}}), holder).await
    }

    async fn request(
        &mut self,
        id: u64,
        method: &str,
        params: Value,
        holder: &Holder,
    ) -> anyhow::Result<Value> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        loop {
            let mut frame = self.receive().await?;
            if frame["method"] == "elicitation/create" {
                self.ask(&frame, holder).await?;
            } else if frame["id"] == id {
                if frame["error"].is_object() {
                    bail!("{method} failed: {}", frame["error"]["message"]);
                }
                return Ok(frame["result"].take());
            }
        }
    }

    /// Puts a question of the server's side into the inbox and sends the answer, unless it is taken back.
    async fn ask(&mut self, request: &Value, holder: &Holder) -> anyhow::Result<()> {
        let (sender, mut delivered) = oneshot::channel();
        let id = holder.open(question(&request["params"])?, move |delivery| sender.send(delivery).is_ok())?;
        let delivery = loop {
            tokio::select! {
                delivery = &mut delivered => break delivery?,
                frame = self.receive() => {
                    let frame = frame?;
                    let is_cancel = frame["method"] == "notifications/cancelled";
                    if is_cancel && frame["params"]["requestId"] == request["id"] {
                        holder.withdraw(&id, EndCause::RequestCancelled);
                        return Ok(());
                    }
                }
            }
        };
        let is_declined =
            holder.settled(&id).is_some_and(|settled| settled.ended.outcome == Outcome::Decline);
        let answer = match delivery {
            Delivery::Accept(content) => json!({"action": "accept", "content": content}),
            Delivery::Decline if is_declined => json!({"action": "decline"}),
            // Nobody has said anything.
            Delivery::Decline | Delivery::Cancel => json!({"action": "cancel"}),
        };
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": answer})).await
    }

    async fn send(&mut self, frame: &Value) -> anyhow::Result<()> {
        self.stdin.write_all(format!("{frame}\n").as_bytes()).await.context("the gateway is gone")
    }

    /// The next frame. Cancel-safe.
    async fn receive(&mut self) -> anyhow::Result<Value> {
        let line = self.lines.next().await?.context("the gateway is gone")?;
        read(&line).context("the gateway says something that is no frame")
    }

    async fn end(self) {
        drop(self.stdin);
        let mut gateway = self.gateway;
        // It ends as its server does; how is of no interest any more.
        let _ = gateway.wait().await;
    }
}

/// Logs what the gateway complains about, until it is gone.
async fn log(stderr: ChildStderr) {
    let mut complaints = Complaints::default();
    let mut lines = Lines::in_pieces(stderr, MAX_COMPLAINT);
    while let Ok(Some(line)) = lines.next().await {
        complaints.log(line.lossy().as_bytes());
    }
}

fn read(line: &Line) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(line.text()?)?)
}

/// The ask that `elicitation/create` is.
fn question(params: &Value) -> anyhow::Result<NewAsk> {
    let message = params["message"].as_str().unwrap_or_default();
    let request = FormRequest { message, schema: &params["requestedSchema"] };
    let form = form::map(&request, &FormProfile::declared())?.form;
    Ok(NewAsk {
        source: Source::Refusal,
        mode: Mode::Form,
        session_id: None,
        tool_call_id: None,
        message: message.to_owned(),
        url: None,
        confirm: None,
        on_deadline: Some(OnDeadline::Refuse),
        form,
        rules: AnswerRules::for_source(Source::Refusal),
        single_use: Vec::new(),
        client: Some(Implementation {
            name: NAME.to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
        server: Some("handraise fake-server".to_owned()),
        timeout: Some(PATIENCE),
    })
}
