//! Agents that this inbox starts itself: `POST /sessions`, prompts and cancellations (inbox.md, API).

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::{SessionCancel, SessionPrompt, action},
    session::{Session, StartSession},
};
use handraise_store::NewSession;
use handraise_transport::{
    ids,
    spawn::{Spawn, Supervised, spawn},
};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    failure::Failure,
    hub::{Connection, Lost},
    inbox::{App, Inbox},
    settings::AgentSettings,
};

/// Longest prompt, in bytes.
const LONGEST_PROMPT: usize = 1024 * 1024;

/// The agents that run, and the prompts that wait for their session to be there.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    running: Mutex<usize>,
    waiting: Mutex<HashMap<String, String>>,
    attended: TaskTracker,
    stopping: CancellationToken,
}

impl Agents {
    fn enter(&self, most: usize) -> bool {
        let mut running = lock(&self.running);
        let fits = *running < most;
        *running += usize::from(fits);
        fits
    }

    fn leave(&self, session: &str) {
        *lock(&self.running) -= 1;
        lock(&self.waiting).remove(session);
    }

    /// Ends every agent and waits for that. Their holders say how their asks ended, so this comes before anything else
    /// of the inbox goes down (F7).
    pub(crate) async fn stop(&self) {
        self.stopping.cancel();
        self.attended.close();
        self.attended.wait().await;
    }
}

/// Starts an agent; its session is there at once, its holder follows.
pub(crate) async fn start(app: &App, holder_token: &str, wanted: StartSession) -> Result<Session, Failure> {
    let Some(agent) = app.settings.agents.iter().find(|agent| agent.id == wanted.agent) else {
        let known: Vec<&str> = app.settings.agents.iter().map(|agent| agent.id.as_str()).collect();
        return Err(Failure::bad_request(format!(
            "no [[agent]] has the id '{}'; configured are: {}",
            wanted.agent.chars().take(64).collect::<String>(),
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        )));
    };
    check_prompt(wanted.prompt.as_deref())?;
    let cwd = match wanted.cwd.map(PathBuf::from).or_else(|| agent.cwd.clone()) {
        Some(cwd) if cwd.is_absolute() => cwd,
        Some(_) => return Err(Failure::bad_request("'cwd' takes an absolute path")),
        None => {
            return Err(Failure::bad_request("say where it runs: 'cwd' here, or in its [[agent]] entry"));
        }
    };
    if !app.agents.enter(app.settings.caps.agents) {
        let message = format!("{} agents run already; end one first", app.settings.caps.agents);
        return Err(Failure::too_many(ErrorCode::LimitExceeded, message));
    }
    let id = ids::mint();
    match launch(app, agent, &id, cwd, holder_token, wanted.prompt).await {
        Ok(session) => Ok(session),
        Err(failure) => {
            app.agents.leave(&id);
            Err(failure)
        }
    }
}

async fn launch(
    app: &App,
    agent: &AgentSettings,
    id: &str,
    cwd: PathBuf,
    holder_token: &str,
    prompt: Option<String>,
) -> Result<Session, Failure> {
    let Some(launcher) = &app.settings.launcher else {
        return Err(Failure::bad_request("this inbox cannot start agents; use `handraise agent -- CMD`"));
    };
    let mut args: Vec<std::ffi::OsString> = launcher.args.iter().map(Into::into).collect();
    args.extend(["--agent-id", &agent.id, "--session-id", id, "--cwd"].map(Into::into));
    args.push(cwd.clone().into());
    args.push("--".into());
    args.extend(agent.command.iter().map(Into::into));
    let command = Spawn {
        program: launcher.program.clone().into(),
        args,
        cwd: Some(cwd.clone()),
        environment: launcher.environment.clone(),
    };
    let cwd = cwd.display().to_string();
    let new = NewSession { id, agent: &agent.id, cwd: Some(&cwd), holder_token };
    app.store.add_session(app.now(), new).await?;
    if let Some(prompt) = prompt {
        lock(&app.agents.waiting).insert(id.to_owned(), prompt);
    }
    let child = match spawn(&command, &launcher.supervisor) {
        Ok(child) => child,
        Err(error) => {
            app.store.end_session(app.now(), id).await?;
            return Err(Failure::internal("the agent could not be started", &error));
        }
    };
    tracing::info!(session.id = id, agent.id = agent.id, "an agent is started");
    app.agents.attended.spawn(attend(Arc::clone(app), child, id.to_owned()));
    app.tell_session(Some(id));
    match app.store.session(id).await? {
        Some((session, instance)) => Ok(app.shown_session(session, instance.as_deref())),
        None => Err(Failure::not_found("session", id)),
    }
}

/// Logs what the agent's process says and ends its session when it ends.
async fn attend(app: App, mut child: Supervised, session: String) {
    // The holder's commands come over its stream; nothing is said on stdin.
    child.stdin = None;
    let stderr = child.stderr.take().map(|stderr| tokio::spawn(log_lines(stderr, session.clone())));
    let stdout = child.stdout.take().map(|stdout| tokio::spawn(log_lines(stdout, session.clone())));
    let status = tokio::select! {
        status = child.wait() => status,
        () = app.agents.stopping.cancelled() => child.stop().await,
    };
    for reader in [stderr, stdout].into_iter().flatten() {
        reader.abort();
    }
    match status {
        Ok(status) => tracing::info!(session.id = session, %status, "an agent ended"),
        Err(error) => tracing::warn!(session.id = session, %error, "an agent ended, nobody knows how"),
    }
    app.agents.leave(&session);
    match app.store.end_session(app.now(), &session).await {
        Ok(true) => app.tell_session(Some(&session)),
        Ok(false) => {}
        Err(error) => tracing::error!(%error, session.id = session, "the end of a session was not noted"),
    }
}

/// What a process writes is not ours to judge: it may hold questions and answers, so it stays at DEBUG.
async fn log_lines(from: impl AsyncRead + Unpin, session: String) {
    const LONGEST: u64 = 16 * 1024;
    let mut lines = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = tokio::io::AsyncReadExt::take(&mut lines, LONGEST);
        match limited.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                tracing::debug!(
                    session.id = session,
                    line = text.trim_end().escape_debug().to_string(),
                    "agent"
                );
            }
        }
    }
}

/// A holder has announced a session: a prompt that came with its start follows now.
pub(crate) fn session_is_there(app: &App, connection: &Arc<Connection>, session: &str) {
    let Some(text) = lock(&app.agents.waiting).remove(session) else { return };
    let (app, connection, session_id) = (Arc::clone(app), Arc::clone(connection), session.to_owned());
    let tasks = app.tasks.clone();
    tasks.spawn(async move {
        let prompt = SessionPrompt { session_id, text };
        match connection.request(action::SESSION_PROMPT, &prompt).await {
            Ok(reply) => {
                if let Some(error) = reply.error {
                    tracing::warn!(session.id = prompt.session_id, %error, "a first prompt was refused");
                }
            }
            Err(Lost::NotWritten) => {
                // It comes back with the same session: the prompt waits for that.
                lock(&app.agents.waiting).insert(prompt.session_id, prompt.text);
            }
            Err(Lost::Unknown) => {
                tracing::warn!(session.id = prompt.session_id, "nobody knows whether a first prompt arrived");
            }
        }
    });
}

/// Prompts a session.
pub(crate) async fn prompt(app: &Inbox, session_id: String, text: String) -> Result<(), Failure> {
    check_prompt(Some(&text))?;
    let prompt = SessionPrompt { session_id: session_id.clone(), text };
    command(app, &session_id, action::SESSION_PROMPT, &prompt).await
}

/// Cancels a session's turn.
pub(crate) async fn cancel(app: &Inbox, session_id: String) -> Result<(), Failure> {
    let cancel = SessionCancel { session_id: session_id.clone() };
    command(app, &session_id, action::SESSION_CANCEL, &cancel).await
}

fn check_prompt(text: Option<&str>) -> Result<(), Failure> {
    if text.is_some_and(|text| text.trim().is_empty() || text.len() > LONGEST_PROMPT) {
        return Err(Failure::bad_request(format!("a prompt has 1 to {LONGEST_PROMPT} bytes")));
    }
    Ok(())
}

async fn command<T: Serialize>(app: &Inbox, session: &str, action: &str, payload: &T) -> Result<(), Failure> {
    let Some((_, instance)) = app.store.session(session).await? else {
        return Err(Failure::not_found("session", session));
    };
    let connection = instance.as_deref().and_then(|instance| app.hub.connection(instance));
    let Some(connection) = connection else { return Err(session_not_connected()) };
    let patience = app.settings.timing.verdict;
    match tokio::time::timeout(patience, connection.request(action, payload)).await {
        Ok(Ok(reply)) => reply.error.map_or(Ok(()), |error| Err(Failure::of_holder(error))),
        Ok(Err(Lost::NotWritten)) => Err(session_not_connected()),
        Ok(Err(Lost::Unknown)) | Err(_) => {
            let message = "it was sent, and the agent's process has not said whether it took it";
            Err(Failure::of_holder(ErrorBody::new(ErrorCode::VerdictUnknown, message)))
        }
    }
}

fn session_not_connected() -> Failure {
    let message = "the process that runs this session is not connected; nothing was sent";
    Failure::of_holder(ErrorBody::new(ErrorCode::HolderNotConnected, message))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
