//! `handraise tool`: an MCP server on stdio with one tool, which asks a human in the inbox.

mod answer;
mod calls;
mod definition;
mod questions;
mod server;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use handraise_api::words::HolderKind;
use handraise_holder::{EndCause, Holder};
use serde_json::Value;
use tokio::{sync::oneshot, time::Instant};

use self::{
    calls::Asker,
    server::{Call, Server},
};
use crate::{Context, Exit, asking, holding, output, signals};

/// Give MCP clients a tool that asks a human
///
/// An MCP server on stdio with one tool, ask_user_question: for agents and clients that cannot ask a person themselves. The
/// questions wait in the inbox, and the answer is the result of the call. A call waits up to --timeout; most clients give up
/// earlier, after a time of their own (docs/tool.md says where to change it), and then the question is taken back at once. So
/// it is when the call is cancelled, and when the client goes away. Without an inbox the server starts all the same, and each
/// call says how to get one. No result without a human's answer looks like one. Exit status: 0 when the client has gone or a
/// signal came, 1 for settings that are wrong and a stdout that cannot be written, 2 for a command line that makes no sense.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  claude mcp add ask -- handraise tool\n  codex mcp add ask -- handraise tool\n  handraise tool --timeout 10m --who caller"
)]
pub(crate) struct Arguments {
    /// How long a call waits for an answer; 55m otherwise
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Whose answers count: operator (every operator's), caller, or not-the-caller, by the owners of both tokens
    #[arg(long, value_name = "WHO")]
    pub(crate) who: Option<String>,
    /// The inbox: https://HOST, http://127.0.0.1:PORT, or unix:SOCKET; otherwise the one of the data directory
    #[arg(long, value_name = "URL")]
    pub(crate) inbox: Option<String>,
    /// The data directory of the inbox on this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

pub(crate) fn run(context: Context, arguments: &Arguments) -> Exit {
    let timeout = asking::patience(arguments.timeout.as_deref())?;
    if let Err(error) = holding::inbox(&context, "") {
        tracing::warn!("nobody can be asked yet: {}", output::told(&error));
    }
    // It lies idle beside a client for most of its life.
    crate::block_on_one_thread(async {
        let stop = signals::shutdown_or_hangup()?;
        let asker = Arc::new(InTheInbox { context, timeout });
        let arriving = calls::read(std::io::stdin());
        calls::serve(Server::new(timeout), asker, arriving, tokio::io::stdout(), stop)
            .await
            .context("stdout cannot be written")?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Asks in the inbox. Each call is a holder of its own, as each `handraise ask` is: so a call knows at once whether the inbox
/// is there, and does not wait for one that has gone since the last.
struct InTheInbox {
    context: Context,
    timeout: Duration,
}

impl InTheInbox {
    async fn connect(&self) -> anyhow::Result<Holder> {
        let Some((inbox, token)) = holding::inbox(&self.context, "")? else {
            bail!("the inbox is \"none\" by the settings; name one with --inbox URL");
        };
        holding::connect(&self.context, HolderKind::Tool, inbox, token).await
    }
}

impl Asker for InTheInbox {
    async fn ask(
        &self,
        call: &Call,
        told: oneshot::Sender<Value>,
        mut taken_back: oneshot::Receiver<EndCause>,
    ) {
        // Nobody reads a result whose client has gone.
        let tell = |result| drop(told.send(result));
        let holder = tokio::select! {
            holder = self.connect() => holder,
            cause = &mut taken_back => {
                if let Ok(EndCause::Shutdown) = cause {
                    tell(answer::not_asked("handraise was stopped"));
                }
                return;
            }
        };
        let holder = match holder {
            Ok(holder) => holder,
            Err(error) => {
                let why = output::told(&error);
                tracing::warn!("nobody could be asked: {why}");
                return tell(answer::not_asked(&why));
            }
        };
        let asked = Instant::now();
        let mut cause = None;
        let withdrawn = async {
            // The other end goes only with the program.
            let why = (&mut taken_back).await.unwrap_or(EndCause::Shutdown);
            *cause.insert(why)
        };
        let ask = call.questions.ask(call.client.clone(), self.timeout);
        let end = asking::put(&holder, ask, &call.caller, withdrawn).await;
        if matches!(cause, None | Some(EndCause::Shutdown)) {
            let there = holder.operator_last_there().is_some_and(|ago| ago <= asked.elapsed());
            tell(match end {
                Ok(end) => answer::result(&call.questions, &end, self.timeout, there),
                Err(error) => answer::not_asked(&output::told(&error)),
            });
        }
        match cause {
            Some(_) => holder.shutdown().await,
            // The client has its answer; an inbox that went away before it heard so has time to come back, as long as the
            // client is here.
            None => holder.shutdown_with_receipt(async { drop(taken_back.await) }).await,
        }
    }
}
