//! Agents that this inbox starts itself: `POST /sessions`, prompts and cancellations (inbox.md, API).

mod attend;
mod last_words;
mod place;

use std::{
    collections::HashMap,
    ffi::OsString,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::http::StatusCode;
use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::{SessionCancel, SessionPrompt, action},
    session::{Session, StartSession},
};
use handraise_store::NewSession;
use handraise_transport::{
    escape, ids,
    spawn::{Spawn, spawn},
};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{attend::Attended, place::Place};
use crate::{
    extract::quoted,
    failure::Failure,
    hub::{Connection, Lost, Reply},
    inbox::{App, Inbox},
    settings::{AgentSettings, Launcher},
};

/// Longest prompt, in bytes.
const LONGEST_PROMPT: usize = 1024 * 1024;
/// How many characters of a program's name are shown.
const LONGEST_PROGRAM: usize = 200;

/// The agents that run, each with the prompt that waits for its session to be there.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    running: Mutex<HashMap<String, Option<String>>>,
    attended: TaskTracker,
    stopping: CancellationToken,
}

impl Agents {
    /// Takes a place for one more, unless there are `most`.
    fn enter(&self, session: &str, prompt: Option<String>, most: usize) -> bool {
        let mut running = self.running();
        let fits = running.len() < most;
        if fits {
            running.insert(session.to_owned(), prompt);
        }
        fits
    }

    /// Gives the place up; returns the prompt that nobody took.
    fn leave(&self, session: &str) -> Option<String> {
        self.running().remove(session).flatten()
    }

    fn take_prompt(&self, session: &str) -> Option<String> {
        self.running().get_mut(session)?.take()
    }

    /// Lets a prompt wait on; returns it when its agent is gone.
    fn keep_prompt(&self, session: &str, prompt: String) -> Option<String> {
        match self.running().get_mut(session) {
            Some(waiting) => {
                *waiting = Some(prompt);
                None
            }
            None => Some(prompt),
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Option<String>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
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
            "'agent' is {}, and no [[agent]] has that id; configured are: {}",
            quoted(&wanted.agent),
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        )));
    };
    if let Some(prompt) = &wanted.prompt {
        check_prompt("prompt", prompt)?;
    }
    let place = Place::of(agent, wanted.cwd).map_err(Failure::bad_request)?;
    let Some(launcher) = &app.settings.launcher else {
        return Err(Failure::bad_request("this inbox cannot start agents; use `handraise agent -- CMD`"));
    };
    check(agent, launcher, &place).await?;
    let id = ids::mint();
    if !app.agents.enter(&id, wanted.prompt, app.settings.caps.agents) {
        let message = format!("{} agents run already; end one first", app.settings.caps.agents);
        return Err(Failure::full(message, None));
    }
    // A caller who hangs up takes only their own waiting with them: whoever has a place also gives it up.
    let (tell, told) = oneshot::channel();
    let (app, agent, launcher) = (Arc::clone(app), agent.clone(), launcher.clone());
    let holder_token = holder_token.to_owned();
    let tasks = app.tasks.clone();
    tasks.spawn(async move {
        let is_wanted = || !tell.is_closed() && !app.agents.stopping.is_cancelled();
        let launched = launch(&app, &agent, &launcher, &id, &place.cwd, &holder_token, is_wanted).await;
        if launched.is_err() {
            app.agents.leave(&id);
        }
        let _ = tell.send(launched);
    });
    told.await.map_err(|error| Failure::internal("the agent could not be started", &error))?
}

/// Whether the agent's program and the place where it is to run are there.
async fn check(agent: &AgentSettings, launcher: &Launcher, place: &Place) -> Result<(), Failure> {
    let (place, command) = (place.clone(), agent.command.clone());
    let path = launcher.environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let checked = tokio::task::spawn_blocking(move || place.check(&command, path.as_deref())).await;
    match checked {
        Ok(Ok(())) => Ok(()),
        Ok(Err(problem)) => {
            tracing::warn!(agent.id = agent.id, "an agent cannot be started: {problem}");
            Err(Failure::bad_request(problem))
        }
        Err(error) => Err(Failure::internal("the agent could not be looked for", &error)),
    }
}

async fn launch(
    app: &App,
    agent: &AgentSettings,
    launcher: &Launcher,
    id: &str,
    cwd: &Path,
    holder_token: &str,
    is_wanted: impl Fn() -> bool,
) -> Result<Session, Failure> {
    let mut args: Vec<OsString> = launcher.args.iter().map(Into::into).collect();
    args.extend(["--agent-id", &agent.id, "--session-id", id, "--cwd"].map(Into::into));
    args.push(cwd.into());
    args.push("--".into());
    args.extend(agent.command.iter().map(Into::into));
    let command = Spawn {
        program: launcher.program.clone().into(),
        args,
        cwd: Some(cwd.to_owned()),
        environment: launcher.environment.clone(),
    };
    let shown_cwd = cwd.display().to_string();
    let new = NewSession { id, agent: &agent.id, cwd: Some(&shown_cwd), holder_token };
    app.store.add_session(app.now(), new).await?;
    if !is_wanted() {
        let problem = format!("agent {} was not started: whoever wanted it has gone", agent.id);
        tracing::info!(session.id = id, agent.id = agent.id, "{problem}");
        let prompt = app.agents.leave(id);
        attend::tell(app, id, prompt, |_| format!("{problem}.")).await;
        attend::end(app, id).await;
        return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Internal, problem));
    }
    // The rest of the command may hold secrets.
    let program = escape::shortened(agent.command.first().map_or("", String::as_str), LONGEST_PROGRAM);
    let child = match spawn(&command, &launcher.supervisor) {
        Ok(child) => child,
        Err(error) => {
            let problem = format!("agent {} (\"{program}\") could not be started: {error}", agent.id);
            tracing::error!(session.id = id, agent.id = agent.id, agent.cwd = shown_cwd, "{problem}");
            let prompt = app.agents.leave(id);
            attend::tell(app, id, prompt, |_| format!("{problem}.")).await;
            attend::end(app, id).await;
            return Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, problem));
        }
    };
    tracing::info!(session.id = id, agent.id = agent.id, agent.program = program, "an agent is started");
    let attended = Attended { session: id.to_owned(), agent: agent.id.clone(), program };
    app.agents.attended.spawn(attend::attend(Arc::clone(app), child, attended));
    app.tell_session(Some(id));
    match app.store.session(id).await? {
        Some((session, instance)) => Ok(app.shown_session(session, instance.as_deref())),
        None => Err(Failure::not_found("session", id)),
    }
}

/// A holder has announced a session: a prompt that came with its start follows now.
pub(crate) fn session_is_there(app: &App, connection: &Arc<Connection>, session: &str) {
    let Some(text) = app.agents.take_prompt(session) else { return };
    let (app, connection, session_id) = (Arc::clone(app), Arc::clone(connection), session.to_owned());
    let tasks = app.tasks.clone();
    tasks.spawn(async move {
        let prompt = SessionPrompt { session_id, text };
        let reply = connection.request(action::SESSION_PROMPT, &prompt).await;
        let SessionPrompt { session_id: session, text } = prompt;
        let (text, notice) = match reply {
            Ok(Reply { error: None, .. }) => return,
            Ok(Reply { error: Some(error), .. }) => {
                tracing::warn!(session.id = session, %error, "a first prompt was refused");
                (text, format!("The prompt was refused: {error}."))
            }
            // It comes back with the same session: the prompt waits for that.
            Err(Lost::NotWritten) => match app.agents.keep_prompt(&session, text) {
                None => return,
                Some(text) => (text, "The agent ended before it took the prompt.".to_owned()),
            },
            Err(Lost::Unknown) => {
                tracing::warn!(session.id = session, "nobody knows whether a first prompt arrived");
                (text, "Nobody knows whether this prompt arrived.".to_owned())
            }
        };
        attend::tell(&app, &session, Some(text), |_| notice).await;
    });
}

/// Prompts a session.
pub(crate) async fn prompt(app: &Inbox, session_id: String, text: String) -> Result<(), Failure> {
    check_prompt("text", &text)?;
    let prompt = SessionPrompt { session_id: session_id.clone(), text };
    command(app, &session_id, action::SESSION_PROMPT, &prompt).await
}

/// Cancels a session's turn.
pub(crate) async fn cancel(app: &Inbox, session_id: String) -> Result<(), Failure> {
    let cancel = SessionCancel { session_id: session_id.clone() };
    command(app, &session_id, action::SESSION_CANCEL, &cancel).await
}

fn check_prompt(field: &str, text: &str) -> Result<(), Failure> {
    let bytes = text.len();
    if text.trim().is_empty() || bytes > LONGEST_PROMPT {
        let what =
            if bytes > LONGEST_PROMPT { format!("has {bytes} bytes") } else { "says nothing".to_owned() };
        return Err(Failure::bad_request(format!("'{field}' {what}; it takes 1 to {LONGEST_PROMPT} bytes")));
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
