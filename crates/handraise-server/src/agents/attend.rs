//! An agent's process from its start to its end: what it says goes to the log, and what nobody else would tell of its end
//! into its session.

use std::{
    io,
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use handraise_api::session::{Author, Message, MessageKind};
use handraise_transport::{escape, lines::Lines, spawn::Supervised};
use tokio::{io::AsyncRead, task::JoinHandle};

use super::last_words::LastWords;
use crate::inbox::{App, Inbox};

/// The longest piece of what a process writes that is taken as one line, in bytes.
const LONGEST_LINE: usize = 16 * 1024;
/// How long the pipes of a process that has ended are read on.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// Which agent runs as which session.
#[derive(Debug, Clone)]
pub(super) struct Attended {
    pub(super) session: String,
    pub(super) agent: String,
    pub(super) program: String,
}

/// Logs what the agent's process says and ends its session when it ends.
pub(super) async fn attend(app: App, mut child: Supervised, attended: Attended) {
    // The holder's commands come over its stream; nothing is said on stdin.
    child.stdin = None;
    let words = Arc::default();
    let read = |from: Box<dyn AsyncRead + Send + Unpin>, words: Option<Arc<Mutex<LastWords>>>| {
        tokio::spawn(log_lines(from, attended.session.clone(), words))
    };
    let stderr = child.stderr.take().map(|stderr| read(Box::new(stderr), Some(Arc::clone(&words))));
    let stdout = child.stdout.take().map(|stdout| read(Box::new(stdout), None));
    let (status, stopped) = tokio::select! {
        status = child.wait() => (status, false),
        () = app.agents.stopping.cancelled() => (child.stop().await, true),
    };
    // Whatever it said last is in the pipes by now.
    for reader in [stderr, stdout].into_iter().flatten() {
        finish(reader).await;
    }
    let failed = !stopped && !status.as_ref().is_ok_and(ExitStatus::success);
    let how = how(&status);
    let prompt = app.agents.leave(&attended.session);
    let Attended { session, agent, program } = &attended;
    if failed {
        let reason = words.lock().unwrap_or_else(PoisonError::into_inner).reason(&how);
        // The lines below are the agent's own, and stay at DEBUG.
        let first = reason.lines().next().unwrap_or_default();
        let first = first.strip_suffix("; it last said:").unwrap_or(first);
        tracing::warn!(
            session.id = session,
            agent.id = agent,
            agent.program = program,
            agent.end = how,
            "an agent failed: {first}"
        );
        let shown = format!("Agent {agent} (\"{program}\") failed: {reason}");
        tell(&app, session, prompt, |took| format!("{shown}{}", if took { "" } else { NOT_TAKEN })).await;
    } else {
        tracing::info!(session.id = session, agent.id = agent, agent.end = how, "an agent ended");
        if prompt.is_some() {
            let when = if stopped { "the inbox went down" } else { "it ended" };
            tell(&app, session, prompt, |_| format!("Agent {agent} did not take the prompt: {when}.")).await;
        }
    }
    end(&app, session).await;
}

/// Closes what a notice says of an agent with a prompt that waited for it.
pub(super) const NOT_TAKEN: &str = "\nIt has not taken the prompt.";

/// Puts a prompt that nobody took, and what there is to say about it, into the transcript.
pub(super) async fn tell(
    app: &Inbox,
    session: &str,
    prompt: Option<String>,
    notice: impl FnOnce(bool) -> String,
) {
    let notice = notice(prompt.is_none());
    let prompt = prompt.map(|text| (MessageKind::UserText, Author::Operator, text));
    for (kind, author, text) in prompt.into_iter().chain([(MessageKind::Notice, Author::System, notice)]) {
        let now = app.now();
        let entry = Message {
            seq: 0,
            session_id: session.to_owned(),
            at: now.wall,
            kind,
            author,
            text,
            continues: false,
            requests_input: false,
            metadata: serde_json::Map::new(),
        };
        match app.store.note(now, entry).await {
            Ok(Some(entry)) => app.tell_message(&entry),
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%error, session.id = session, "what became of an agent was not noted");
            }
        }
    }
}

/// Ends the session of an agent that is gone.
pub(super) async fn end(app: &Inbox, session: &str) {
    match app.store.end_session(app.now(), session).await {
        Ok(true) => app.tell_session(Some(session)),
        Ok(false) => {}
        Err(error) => tracing::error!(%error, session.id = session, "the end of a session was not noted"),
    }
}

fn how(status: &io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match status.code() {
            Some(code) => format!("ended with exit status {code}"),
            None => "ended because its supervisor was killed".to_owned(),
        },
        Err(error) => format!("ended in an unknown way ({error})"),
    }
}

async fn finish(mut reader: JoinHandle<()>) {
    if tokio::time::timeout(LAST_MOMENT, &mut reader).await.is_err() {
        reader.abort();
    }
}

/// What a process writes is not ours to judge: it may hold questions and answers, so it stays at DEBUG.
async fn log_lines(from: impl AsyncRead + Unpin, session: String, last: Option<Arc<Mutex<LastWords>>>) {
    let mut lines = Lines::in_pieces(from, LONGEST_LINE);
    while let Ok(Some(line)) = lines.next().await {
        let line = line.lossy();
        tracing::debug!(session.id = session, line = escape::line(&line).to_string(), "agent");
        if let Some(last) = &last {
            last.lock().unwrap_or_else(PoisonError::into_inner).push(&line);
        }
    }
}
