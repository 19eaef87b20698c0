//! The life of one agent: start, introduction, session, turns, end (acp.md, "Agent life").

use std::{
    future::{Future, pending},
    io::Write,
    pin::{Pin, pin},
    sync::{Arc, OnceLock},
    time::Duration,
};

use agent_client_protocol::{Builder, Client};
use futures_util::{FutureExt as _, future::FusedFuture as _};
use handraise_api::{frame::SessionUpdated, session::SessionState};
use handraise_holder::Holder;
use handraise_transport::ids;

use crate::{
    AgentError, AgentSettings, Ended,
    asks::Asks,
    connection,
    dispatch::Dispatcher,
    files::Files,
    link::Link,
    output::{Format, Output},
    process::Process,
    terminals::Terminals,
    transcript::Transcript,
    turns::Turns,
};

/// How long the last frames may take to be written.
const FLUSH: Duration = Duration::from_secs(1);

/// Runs an agent until its prompts are done, it ends, or `shutdown` completes.
///
/// Without a holder forms are not advertised, elicitations are declined and permissions rejected. The holder is shut
/// down at the end: its last settlements have a moment to reach the inbox (F7), and the receipt of an answer half a
/// minute, unless `shutdown` completes.
///
/// # Errors
/// When the settings contradict each other, or the agent cannot be started, breaks the protocol, or ends by itself
/// while something is expected of it.
pub async fn run(
    settings: AgentSettings,
    holder: Option<Holder>,
    output: impl Write + Send + 'static,
    shutdown: impl Future<Output = ()>,
) -> Result<Ended, AgentError> {
    settings.check()?;
    let has_inbox = holder.is_some();
    let holder = holder.unwrap_or_else(Holder::detached);
    let format = match (settings.json, settings.prompt.is_some() || settings.attach.is_some()) {
        (true, _) => Format::Json,
        (false, true) => Format::Text,
        (false, false) => Format::Nothing,
    };
    let output = Output::new(format, output);
    let mut shutdown = pin!(shutdown.fuse());
    let result = live(settings, &holder, has_inbox, &output, shutdown.as_mut()).await;
    // Who waits for our words does not wait for the inbox.
    let last_words = async {
        let printer = output.printer();
        let stop_reason = result.as_ref().ok().and_then(Ended::stop_reason);
        printer.end(stop_reason, result.as_ref().err().map(ToString::to_string)).await;
        drop(printer);
        output.finish().await
    };
    // One that was told to end goes soon; one that ended by itself stays for the receipt of an answer.
    let hurried = async {
        if !shutdown.is_terminated() {
            shutdown.await;
        }
    };
    let (written, ()) = tokio::join!(last_words, holder.shutdown_with_receipt(hurried));
    let ended = result?;
    written.map_err(AgentError::Output)?;
    Ok(ended)
}

async fn live(
    settings: AgentSettings,
    holder: &Holder,
    has_inbox: bool,
    output: &Output,
    shutdown: Pin<&mut impl Future<Output = ()>>,
) -> Result<Ended, AgentError> {
    let cwd_error = |source| AgentError::Cwd { path: settings.cwd.display().to_string(), source };
    let files = Arc::new(Files::open(&settings.cwd).map_err(cwd_error)?);
    let link = Link::new(Arc::clone(&settings.clock));
    let session_id = settings.session_id.clone().unwrap_or_else(ids::mint);
    // One look at the flag for both the advertisement and the handler (F5).
    let takes_forms = has_inbox && settings.elicitation.unwrap_or_else(|| holder.flags().acp_elicitation);
    let asks = Arc::new(Asks::new(
        holder.clone(),
        Arc::clone(&link),
        session_id.clone(),
        takes_forms,
        settings.answer_timeout,
    ));
    let session = SessionUpdated {
        session_id: session_id.clone(),
        agent: settings.agent_id(),
        title: None,
        cwd: Some(settings.cwd.display().to_string()),
        state: SessionState::Idle,
        stop_reason: None,
        background: false,
    };
    let transcript =
        Transcript::new(holder.clone(), output.printer(), Arc::clone(&settings.clock), session, has_inbox);
    let commands = holder.commands();
    let mut process = Process::start(&settings)?;
    let (from_agent, to_agent) =
        process.pipes().ok_or_else(|| AgentError::Broken("the process has no pipes".to_owned()))?;
    let connection = connection::connect(from_agent, to_agent, &link);
    let peer = Arc::new(OnceLock::new());
    let terminals = settings.allow_terminal.then(|| {
        let (environment, supervisor) = (settings.environment.clone(), settings.supervisor.clone());
        Arc::new(Terminals::new(Arc::clone(&files), environment, supervisor))
    });
    let dispatcher = Dispatcher::new(
        Arc::clone(&link),
        Arc::clone(&asks),
        Arc::clone(&transcript),
        files,
        Arc::clone(&peer),
        terminals.clone(),
    );
    let turns = Turns {
        settings,
        session_id,
        takes_forms,
        link: Arc::clone(&link),
        asks: Arc::clone(&asks),
        transcript: Arc::clone(&transcript),
        process: &mut process,
        peer,
        closed: connection.closed,
        commands,
    };
    let result = Builder::new_with(Client, dispatcher)
        .name("agent")
        .connect_with(connection.channel, async move |cx| Ok(turns.run(cx, shutdown).await))
        .await;
    // The protocol crate has let go of its channel: what it still wanted to say is written, then stdin is closed.
    let _ = tokio::time::timeout(FLUSH, connection.writer).await;
    link.died();
    asks.agent_disconnected();
    let terminals_end = async {
        if let Some(terminals) = terminals {
            terminals.close().await;
        }
    };
    tokio::join!(process.stop(), terminals_end);
    transcript.ended().await;
    match result {
        Ok(result) => result,
        Err(error) => Err(AgentError::Broken(format!("{} (code {})", error.message, i32::from(error.code)))),
    }
}

/// Waits for what may not be there.
pub(crate) async fn maybe<F: Future + Unpin>(future: Option<&mut F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}
