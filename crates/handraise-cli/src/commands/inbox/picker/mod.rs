//! `handraise inbox` on a terminal: a picker with the keys of the page.
//!
//! Everything that decides is a value ([`state`], [`card`], [`guard`]) and is told the time; this file brings keys, events
//! and verdicts to it, paints, and does what comes out.

mod card;
mod draft;
mod field;
mod guard;
mod keys;
mod screen;
mod state;
#[cfg(test)]
mod tests;
mod text;
mod together;
mod verdict;
mod view;

use std::{
    collections::HashMap,
    io::{self, Read as _},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail};
use handraise_api::{
    access::{CreateToken, CreatedToken, Scope},
    ask::{AnswerRequest, Ask, AskList, BatchEntry},
    event::{self, Snapshot},
};
use handraise_transport::{
    clock::{Clock as _, SystemClock},
    escape,
};
use jiff::{SignedDuration, tz::TimeZone};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    task::JoinHandle,
    time::Instant,
};

use self::{
    keys::Keys,
    screen::Screen,
    state::{Effect, Picker},
};
use super::client::{Client, Verdict, escaped};
use crate::{
    Context, Exit,
    inbox::Reached,
    live::{Event, Live, Said},
    signals,
};

/// How long a picker may run: its token ends then, also when it was killed.
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How long an escape character may be the beginning of something.
const ESCAPE: Duration = Duration::from_millis(40);
/// Times on the screen go on this often.
const TICK: Duration = Duration::from_secs(1);

/// Runs the picker with a token of its own: only what this terminal has shown may count as a human's answer (S15), and
/// not what another process answers with the token that lies in the data directory.
pub(super) async fn run(context: &Context, client: Client) -> Exit {
    let term = context.environment.get("TERM").and_then(|term| term.to_str());
    if term.is_none_or(|term| term == "dumb") {
        bail!("TERM names no terminal that can be painted on; `handraise inbox list` works on every one");
    }
    let user = ["USER", "LOGNAME"].iter().find_map(|name| context.environment.get(name)?.to_str());
    let name = match user {
        Some(user) => format!("{} (terminal)", escape::shortened(user, 60)),
        None => "terminal".to_owned(),
    };
    let expires = SystemClock.wall().checked_add(DAY).context("the clock stands at the end of time")?;
    let wanted =
        CreateToken { scope: Scope::Operator, name: Some(name), owner: None, expires: Some(expires) };
    let created: CreatedToken = client.post("/api/v1/tokens", &wanted).await?;
    let outcome = pick(context, client.with_token(&created.token)).await;
    if let Err(error) = client.delete(&format!("/api/v1/tokens/{}", created.id)).await {
        tracing::debug!(
            error = format!("{error:#}"),
            "the picker's token was not revoked; it ends by itself"
        );
    }
    outcome
}

/// What the tasks that talk to the inbox come back with.
enum Told {
    More(anyhow::Result<AskList>),
    NotSeen(String),
    Verdict(String, Result<Verdict, String>),
    Together(Result<Vec<Ask>, String>),
}

/// The picker and what it talks to.
struct Run {
    client: Arc<Client>,
    picker: Picker,
    screen: Screen,
    /// The zone of this machine, for times on the screen.
    zone: TimeZone,
    told: mpsc::UnboundedSender<Told>,
    /// When the inbox took note that an ask was painted.
    seen: HashMap<String, JoinHandle<Option<Instant>>>,
}

async fn pick(context: &Context, client: Client) -> Exit {
    let not_running = client.not_running();
    let Reached::Answer(mut live) = Live::open(client.as_inbox()).await? else { return Err(not_running) };
    let ended = signals::shutdown_or_hangup()?;
    let mut resized = signal(SignalKind::window_change())?;
    let screen = Screen::enter(context.environment.get("NO_COLOR").is_none())?;
    let mut input = read_keys();
    let (told, mut telling) = mpsc::unbounded_channel();
    let client = Arc::new(client);
    let (picker, zone) = (Picker::default(), TimeZone::system());
    let mut run = Run { client, picker, screen, zone, told, seen: HashMap::new() };
    let mut keys = Keys::default();
    let mut tick = tokio::time::interval(TICK);
    let mut escape_at: Option<Instant> = None;
    // When the keys that are taken next were pressed.
    let mut pressed_at = SystemClock.boot_millis();
    tokio::pin!(ended);
    loop {
        run.paint()?;
        let escape_ends = async {
            match escape_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let pressed = tokio::select! {
            () = &mut ended => break,
            read = input.recv() => match read {
                Some((at, bytes)) => {
                    pressed_at = at;
                    let pressed = keys.push(&bytes);
                    escape_at = keys.is_waiting().then(|| Instant::now() + ESCAPE);
                    pressed
                }
                // The terminal is gone.
                None => break,
            },
            () = escape_ends => {
                escape_at = None;
                keys.flush()
            }
            said = live.next() => {
                run.said(said?)?;
                Vec::new()
            }
            told = telling.recv() => {
                if let Some(told) = told {
                    run.take(told);
                }
                Vec::new()
            }
            _ = resized.recv() => {
                run.screen.clear();
                run.picker.resized();
                Vec::new()
            }
            _ = tick.tick() => Vec::new(),
        };
        for key in pressed {
            let effects = run.picker.key(pressed_at, &key);
            if effects.contains(&Effect::Quit) {
                return Ok(ExitCode::SUCCESS);
            }
            for effect in effects {
                run.perform(effect);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the terminal on a thread of its own, which waits in a read for as long as the program runs. Each read comes with
/// its time: keys that came together are together however late they are taken (S40), and came before what was painted since.
fn read_keys() -> mpsc::Receiver<(u64, Vec<u8>)> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = io::stdin().lock().read(&mut buffer) {
            let keys = buffer.get(..read).unwrap_or_default().to_vec();
            if sender.blocking_send((SystemClock.boot_millis(), keys)).is_err() {
                break;
            }
        }
    });
    receiver
}

impl Run {
    fn paint(&mut self) -> anyhow::Result<()> {
        let now = SystemClock.wall().to_zoned_datetime(self.zone.clone());
        let frame = view::frame(&mut self.picker, &now, Screen::size());
        self.screen.paint(&frame).context("the terminal cannot be written to")?;
        if let Some(effect) = self.picker.painted(SystemClock.boot_millis(), frame.painted.as_ref()) {
            self.perform(effect);
        }
        Ok(())
    }

    fn said(&mut self, said: Said) -> anyhow::Result<()> {
        match said {
            Said::Lost => self.picker.lost(true),
            Said::Back => self.picker.lost(false),
            Said::Event(Event { name, data, .. }) => match name.as_str() {
                event::SNAPSHOT => {
                    let snapshot: Snapshot = understood(&data)?;
                    self.picker.snapshot(snapshot.asks, snapshot.next_cursor);
                }
                event::ASK_OPENED | event::ASK_UPDATED | event::ASK_SETTLED => {
                    let ask: Ask = understood(&data)?;
                    self.picker.changed(&ask);
                }
                _ => {}
            },
        }
        Ok(())
    }

    fn take(&mut self, told: Told) {
        match told {
            Told::More(Ok(page)) => self.picker.more(page.asks, page.next_cursor),
            Told::More(Err(error)) => {
                self.picker.no_more();
                self.picker.note = Some(format!("{error:#}"));
            }
            Told::Together(asks) => self.picker.answered_together(asks),
            Told::NotSeen(id) => self.picker.not_seen(&id),
            Told::Verdict(id, verdict) => self.picker.verdict(&id, verdict),
        }
    }

    fn perform(&mut self, effect: Effect) {
        let (client, told) = (Arc::clone(&self.client), self.told.clone());
        match effect {
            Effect::Quit => {}
            Effect::LoadMore(cursor) => {
                tokio::spawn(async move {
                    let query = format!("state=open&limit=100&cursor={}", escaped(&cursor));
                    // Nobody listens when the picker has ended.
                    let _ = told.send(Told::More(client.page(&query).await));
                });
            }
            Effect::Seen { id, digest } => {
                let key = id.clone();
                let report = tokio::spawn(async move {
                    match client.seen(&id, &digest).await {
                        Ok(()) => Some(Instant::now()),
                        Err(error) => {
                            tracing::debug!(
                                ask.id = id,
                                error = format!("{error:#}"),
                                "seen was not taken up"
                            );
                            let _ = told.send(Told::NotSeen(id));
                            None
                        }
                    }
                });
                self.seen.insert(key, report);
            }
            Effect::SendTogether(requests) => {
                let seen: Vec<_> = requests.iter().filter_map(|(id, _)| self.seen.remove(id)).collect();
                tokio::spawn(async move {
                    for report in seen {
                        after(report).await;
                    }
                    let entry = |(id, request): (String, AnswerRequest)| BatchEntry {
                        id,
                        answers: request.answers,
                        rejected: false,
                    };
                    let asks = client.answer_together(requests.into_iter().map(entry).collect()).await;
                    let _ = told.send(Told::Together(asks.map_err(|error| format!("{error:#}"))));
                });
            }
            Effect::Send { id, request } => {
                let seen = self.seen.remove(&id);
                tokio::spawn(async move {
                    let verdict = send(&client, seen, &id, &request).await;
                    let _ = told.send(Told::Verdict(id, verdict));
                });
            }
        }
    }
}

/// Sends an answer, after the report that its question was painted: it must not overtake it (S15).
async fn send(
    client: &Client,
    seen: Option<JoinHandle<Option<Instant>>>,
    id: &str,
    request: &AnswerRequest,
) -> Result<Verdict, String> {
    if let Some(seen) = seen {
        after(seen).await;
    }
    client.answer(id, request).await.map_err(|error| format!("{error:#}"))
}

/// Waits until a report that a question was painted has been there for long enough.
async fn after(seen: JoinHandle<Option<Instant>>) {
    if let Ok(Some(taken)) = seen.await {
        tokio::time::sleep_until(taken + Duration::from_millis(guard::STILL)).await;
    }
}

fn understood<T: serde::de::DeserializeOwned>(data: &str) -> anyhow::Result<T> {
    serde_json::from_str(data).context("an event of the inbox is not understood; are both of one version?")
}
