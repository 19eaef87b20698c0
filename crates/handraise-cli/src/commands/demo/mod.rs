//! `handraise demo`: the inbox in a throw-away data directory, with an agent, a script and a tool that ask.

mod client;

use std::{net::TcpListener, path::Path, process::ExitCode};

use anyhow::{Context as _, bail};
use handraise_api::{
    ask::Ask,
    event,
    session::{Message, MessageKind, Session, StartSession},
    words::{HolderKind, Source, Who},
};
use handraise_holder::{Holder, InboxAddress, Token};
use handraise_server::{AgentSettings, Ready};
use http_body_util::BodyExt as _;
use tokio::sync::oneshot;

use self::client::Tapped;
use crate::{
    Context, Exit,
    asking::{self, Caller},
    commands::{
        ask::question::{ScriptQuestion, Wanted},
        up,
    },
    holding,
    inbox::{Inbox, Reached},
    live::Parser,
    local::{self, Commands},
    output, signals,
};

/// Answer your first questions
///
/// Runs the inbox in a throw-away data directory with a scripted agent that asks five forms, a script that asks one
/// question, and a tool behind the gateway that would refuse to choose between two devices; and prints a sign-in link on
/// stdout. No model and no account is needed. Ends with Ctrl-C, and leaves nothing behind.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  handraise demo")]
pub(crate) struct Arguments {
    /// Where to listen; otherwise 127.0.0.1:7345, or a free port when that is taken
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Do not open a browser
    #[arg(long)]
    pub(crate) no_open: bool,
}

/// What the scripted agent is called.
const AGENT: &str = "demo";

pub(crate) fn run(context: &Context) -> Exit {
    let folder = tempfile::Builder::new()
        .prefix("handraise-demo-")
        .tempdir()
        .context("cannot make a throw-away data directory")?;
    let status = crate::block_on(serve(context, folder.path()));
    let path = folder.path().to_owned();
    folder.close().with_context(|| format!("cannot remove {}", path.display()))?;
    status
}

async fn serve(context: &Context, folder: &Path) -> Exit {
    let shutdown = signals::shutdown_or_hangup()?;
    handraise_transport::spawn::become_subreaper()?;
    // Apart, so that the agent does not work where the inbox keeps its tokens.
    let (folder, work, gateway) = (&folder.join("inbox"), folder.join("work"), folder.join("gateway"));
    std::fs::create_dir(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let here = context.in_data_dir(folder);
    let mut settings = up::server_settings(&here)?;
    settings.agents = vec![AgentSettings {
        id: AGENT.to_owned(),
        command: vec![own_path()?, "fake-agent".to_owned(), "--script".to_owned(), AGENT.to_owned()],
        cwd: Some(work),
    }];
    // Somebody's real inbox may have the usual port.
    if TcpListener::bind(settings.listen).is_err() {
        tracing::info!(listen.address = %settings.listen, "taken; listening on a free port");
        settings.listen.set_port(0);
    }
    let (ready_sender, ready) = oneshot::channel();
    let opens = up::opens_browser(context).then(|| folder.to_owned());
    let ours = here.commands.clone();
    let announce = move |ready: Ready| {
        up::announce(&ready, opens, &ours);
        // The guide below may be gone already when the inbox is shut down while it starts.
        let _ = ready_sender.send(());
    };
    let commands = &here.commands;
    let parts = async {
        if ready.await.is_ok() {
            let (agent, script, tool) = tokio::join!(
                guide(folder, commands),
                script(folder, commands),
                tool(context, folder, &gateway)
            );
            for error in [agent.err(), script.err(), tool.err()].into_iter().flatten() {
                tracing::warn!(error = output::told(&error), "a part of the demo does not work");
            }
        }
    };
    let (end, ends) = oneshot::channel();
    let shutdown = async move {
        shutdown.await;
        let _ = end.send(());
    };
    let guide = async {
        // Who asks goes before the inbox does, and does not miss it.
        tokio::select! {
            biased;
            _ = ends => {}
            () = parts => {}
        }
        // The inbox goes on until it is told to end.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        outcome = handraise_server::serve(settings, announce, shutdown) => outcome?,
        () = guide => {}
    }
    output::complain("The demo is over; nothing of it is left.");
    Ok(ExitCode::SUCCESS)
}

fn own_path() -> anyhow::Result<String> {
    match std::env::current_exe()?.into_os_string().into_string() {
        Ok(path) => Ok(path),
        Err(path) => bail!("the path {} is not UTF-8", path.display()),
    }
}

/// Starts the agent and says on stderr how it goes.
async fn guide(data_dir: &Path, commands: &Commands) -> anyhow::Result<()> {
    let file = local::read(data_dir, commands)?.context("the inbox has not said where it is")?;
    let inbox = Inbox::new(&file);
    let Reached::Answer(mut events) = inbox.events(None).await? else { bail!("the inbox is gone") };
    let start = StartSession { agent: AGENT.to_owned(), cwd: None, prompt: Some(AGENT.to_owned()) };
    let Reached::Answer(session) = inbox.post::<_, Session>("/api/v1/sessions", &start).await? else {
        bail!("the inbox is gone")
    };
    output::complain("A scripted agent is working. Its questions wait in the inbox; Ctrl-C ends the demo.");

    let mut parser = Parser::default();
    while let Some(frame) = events.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        for event in parser.push(&data)? {
            if let Some(said) = progress(&event.name, &event.data, &session.id) {
                output::complain(&said);
            }
        }
    }
    Ok(())
}

/// Asks as `handraise ask` does, and says on stderr what a shell would do then.
async fn script(data_dir: &Path, commands: &Commands) -> anyhow::Result<()> {
    let file = local::read(data_dir, commands)?.context("the inbox has not said where it is")?;
    let choices = ["yes".to_owned(), "no".to_owned()];
    let wanted = Wanted { message: "Deploy the shop?", choices: &choices, ..Wanted::default() };
    let question = ScriptQuestion::new(wanted)?;
    let inbox = InboxAddress::Socket(file.socket);
    let settings = holding::settings(Who::Operator, HolderKind::Ask, inbox, Token::new(file.holder_token));
    let holder = Holder::connect(settings).await?;
    let end = asking::put(&holder, question.ask(), &Caller::SILENT, std::future::pending()).await?;
    holder.shutdown().await;
    let status = question.status(&end);
    let goes_on = if status == 0 { "its `&&` goes on" } else { "its `&&` does not go on" };
    output::complain(&format!("The script's `handraise ask` exits with {status}: {goes_on}."));
    Ok(())
}

/// Calls a tool through the gateway as an MCP client would, and says on stderr how the call ended.
async fn tool(context: &Context, data_dir: &Path, own_dir: &Path) -> anyhow::Result<()> {
    let ended = match client::tap(context, data_dir, own_dir).await? {
        Tapped::Ran(said) => format!("The same call went on with the answer, and the tool says: {said}"),
        Tapped::Refused => "The call ended with the tool's refusal, as without the gateway.".to_owned(),
    };
    output::complain(&ended);
    let own = own_path()?;
    output::complain(&format!(
        "An MCP client of your own asks in its own prompt: claude mcp add devices -- {own} mcp -- {own} fake-server \
         (other clients: docs/gateway.md)"
    ));
    Ok(())
}

/// What an event means to somebody who watches the demo.
fn progress(event: &str, data: &str, session: &str) -> Option<String> {
    match event {
        event::ASK_OPENED => {
            let ask: Ask = serde_json::from_str(data).ok()?;
            match ask.content.source {
                Source::Script => {
                    let asks =
                        "A script asks: handraise ask \"Deploy the shop?\" --choice yes --choice no && …";
                    return Some(asks.to_owned());
                }
                Source::Refusal => {
                    let tool = client::TOOL;
                    return Some(format!(
                        "{tool} of an MCP server refused to choose a device; the gateway made that a question."
                    ));
                }
                Source::Elicitation | Source::Permission | Source::Confirm | Source::Tool => {}
            }
            let count = ask.content.questions.len();
            let questions = if count == 1 { "a question" } else { "a few questions in one form" };
            Some(format!("The agent asks {questions} and waits."))
        }
        event::ASK_SETTLED => {
            let ask: Ask = serde_json::from_str(data).ok()?;
            let outcome = ask.settlement?.outcome;
            (ask.content.source == Source::Elicitation)
                .then(|| format!("Settled: {}. The same turn of the agent goes on.", outcome.as_str()))
        }
        event::SESSION_MESSAGE => {
            let message: Message = serde_json::from_str(data).ok()?;
            (message.session_id == session && message.kind == MessageKind::TurnEnded).then(|| {
                "The agent's turn has ended. Prompt it again on its session's page, or press Ctrl-C."
                    .to_owned()
            })
        }
        _ => None,
    }
}
