//! What is known of a server process: which arguments of its tools are headers, and which versions it speaks (S3); and the
//! requests that wait until that is known.
//!
//! A server that reads lines sees no headers, so that nobody but us can say whether they are true. What is known is what
//! the process itself has said, to a client or to us, and is gone with it. A request that cannot be judged by it waits
//! until the process was asked: for its tools, once, or for its versions, when a request names another one than the first
//! of its era. A server at a URL judges for itself.

use bytes::Bytes;
use handraise_mcp::{
    declared::{FIRST_MODERN, modern_version},
    frame::{ClientFrame, Id, ServerFrame, error_response},
    http::headers::{self, HeaderMismatch, SeenTools},
};
use handraise_transport::escape;
use serde_json::json;

use super::{question::Question, reply::INTERNAL};
use crate::upstream::Beside;

/// How many ticks the server has for a page of its tools, or for its versions.
const PATIENCE: u32 = 10;
/// How many pages of tools are asked for.
const MOST_PAGES: u32 = 64;
/// How many versions are remembered.
const MOST_VERSIONS: usize = 64;
/// The protocol's code for a version that a server does not speak.
const UNSUPPORTED_VERSION: i32 = -32022;

/// What is known of a server.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// It reads headers itself.
    is_remote: bool,
    tools: SeenTools,
    /// All of its tools have been listed since they last changed.
    is_listed: bool,
    /// How often they have changed.
    changes: u64,
    versions: Option<Vec<String>>,
    asking: Option<Asking>,
    waiting: Vec<Held>,
    /// Those who wait are to be looked at again.
    is_due: bool,
}

/// What the server has to be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Tools,
    Versions,
}

/// What an answer tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tells {
    pub(super) what: Need,
    /// It may be the beginning of a list, and not a later page.
    is_first: bool,
    /// How often the tools had changed when it was asked for.
    changes: u64,
}

/// What is being asked.
#[derive(Debug)]
struct Asking {
    need: Need,
    cursor: Option<String>,
    pages: u32,
    ticks: u32,
    /// The question is with the server.
    is_asked: bool,
    changes: u64,
}

/// A request that waits. It is open at its desk.
#[derive(Debug)]
pub(crate) struct Held {
    /// What the desk knows it by.
    pub(crate) key: u64,
    /// As it goes to the server.
    pub(crate) frame: Bytes,
    pub(crate) beside: Beside,
    headers: Vec<(String, Vec<u8>)>,
    /// What the server was asked for in vain.
    tried: Vec<Need>,
}

/// Whether a request goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passes,
    Waits,
    Refused(Refused),
}

/// Why it does not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Mismatch(HeaderMismatch),
    /// The server does not speak its version.
    Version {
        asked: String,
        spoken: Vec<String>,
    },
    /// Nobody can say whether its headers are true.
    Unlisted,
}

/// What has become possible.
#[derive(Debug, Default)]
pub(crate) struct Due {
    /// What the server is to be asked.
    pub(crate) question: Option<Question>,
    /// Requests that go on.
    pub(crate) requests: Vec<Held>,
    /// Requests that do not.
    pub(crate) refused: Vec<(u64, Refused)>,
}

impl Refused {
    /// The answer.
    pub(crate) fn reply(&self, id: Option<Id<'_>>) -> Vec<u8> {
        let raw = id.map_or("null", Id::raw);
        match self {
            Self::Mismatch(mismatch) => mismatch.reply(id),
            Self::Version { asked, spoken } => {
                let data = json!({"supported": spoken, "requested": asked}).to_string();
                error_response(raw, UNSUPPORTED_VERSION, "Unsupported protocol version", Some(&data))
            }
            Self::Unlisted => {
                let message = "the MCP server does not list its tools, so that nobody can say whether the Mcp-Param \
                    headers of this call are true; try again later";
                error_response(raw, INTERNAL, message, None)
            }
        }
    }
}

impl Held {
    pub(crate) fn new<'h>(
        key: u64,
        frame: Bytes,
        headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
        beside: Beside,
    ) -> Self {
        let headers = headers.into_iter().filter(|(name, _)| headers::is_mirror(name));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_vec())).collect();
        Self { key, frame, beside, headers, tried: Vec::new() }
    }
}

impl Known {
    pub(crate) fn new(is_remote: bool) -> Self {
        Self { is_remote, ..Self::default() }
    }

    /// What the answer to a request tells.
    pub(crate) fn tells(&self, frame: &ClientFrame<'_>) -> Option<Tells> {
        let what = match frame.method()? {
            "tools/list" => Need::Tools,
            "server/discover" => Need::Versions,
            _ => return None,
        };
        let is_first = frame.param_text("cursor").is_none_or(|cursor| cursor == "null");
        Some(Tells { what, is_first, changes: self.changes })
    }

    /// Judges a request by its headers and its version.
    pub(crate) fn judge<'h>(
        &self,
        frame: &ClientFrame<'_>,
        headers: impl IntoIterator<Item = (&'h str, &'h [u8])> + Clone,
    ) -> Verdict {
        match self.look(frame, headers, &[]) {
            Ok(None) => Verdict::Passes,
            Ok(Some(_)) => Verdict::Waits,
            Err(refused) => Verdict::Refused(refused),
        }
    }

    /// What has to be known to judge it, beside what was `tried`.
    fn look<'h>(
        &self,
        frame: &ClientFrame<'_>,
        headers: impl IntoIterator<Item = (&'h str, &'h [u8])> + Clone,
        tried: &[Need],
    ) -> Result<Option<Need>, Refused> {
        let may_ask = |need| !self.is_remote && !tried.contains(&need);
        let version = modern_version(frame);
        if let Some(version) = &version {
            match &self.versions {
                Some(spoken) if !spoken.contains(version) => {
                    return Err(Refused::Version { asked: version.clone(), spoken: spoken.clone() });
                }
                None if version != FIRST_MODERN && may_ask(Need::Versions) => {
                    return Ok(Some(Need::Versions));
                }
                Some(_) | None => {}
            }
        }
        if frame.method() != Some("tools/call") || frame.id().is_none() {
            return Ok(None);
        }
        let is_known = self.is_listed || self.is_remote;
        // Those of a session may be absent, and say nothing then.
        let has_params = || headers.clone().into_iter().any(|(name, _)| headers::is_param(name));
        if !is_known && may_ask(Need::Tools) && (version.is_some() || has_params()) {
            return Ok(Some(Need::Tools));
        }
        match headers::name(frame).and_then(|name| self.tools.get(&name)) {
            Some(tool) => {
                headers::check(frame, headers, Some(tool)).map(|()| None).map_err(Refused::Mismatch)
            }
            None if !is_known && has_params() => Err(Refused::Unlisted),
            None => Ok(None),
        }
    }

    /// Takes in a request that [waits](Verdict::Waits).
    pub(crate) fn wait(&mut self, held: Held) {
        self.waiting.push(held);
        self.is_due |= self.asking.is_none();
    }

    /// A request waits no longer.
    pub(crate) fn forget(&mut self, key: u64) {
        if !self.waiting.is_empty() {
            self.waiting.retain(|held| held.key != key);
        }
    }

    /// Whether a request waits.
    pub(crate) fn holds(&self, key: u64) -> bool {
        self.waiting.iter().any(|held| held.key == key)
    }

    /// Those who wait, for whom nothing comes any more.
    pub(crate) fn take_waiting(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.waiting)
    }

    /// The server says that its tools have changed.
    pub(crate) fn tools_changed(&mut self) {
        self.changes += 1;
        self.is_listed = false;
    }

    /// Learns from an answer. `ours`: it is one to a question of ours.
    pub(crate) fn learn(&mut self, tells: Tells, frame: &ServerFrame<'_>, ours: bool) {
        let result = frame.result();
        let is_told = match tells.what {
            Need::Versions => {
                result.and_then(|_| versions(frame)).map(|told| self.versions = Some(told)).is_some()
            }
            Need::Tools => result.is_some_and(|result| self.learn_tools(tells, result, frame, ours)),
        };
        if ours {
            self.answered(is_told, next_cursor(frame).filter(|_| tells.what == Need::Tools && is_told));
        }
    }

    fn learn_tools(&mut self, tells: Tells, result: &str, frame: &ServerFrame<'_>, ours: bool) -> bool {
        for (tool, reason) in self.tools.learn(result) {
            tracing::warn!(tool = escape::line(&tool).to_string(), %reason, "headers of a tool cannot be told");
        }
        let is_list = frame.result_member("tools").is_some_and(|tools| tools.starts_with('['));
        let is_whole = is_list && next_cursor(frame).is_none() && (tells.is_first || ours);
        if is_whole && tells.changes == self.changes {
            self.is_listed = true;
        }
        is_list
    }

    /// A question of ours was answered, or was not.
    fn answered(&mut self, is_told: bool, cursor: Option<String>) {
        let Some(asking) = &mut self.asking else { return };
        self.is_due = true;
        if cursor.is_some() && asking.pages < MOST_PAGES {
            asking.cursor = cursor;
            (asking.is_asked, asking.ticks) = (false, 0);
            return;
        }
        let need = asking.need;
        self.asking = None;
        if !is_told {
            tracing::warn!("an MCP server does not say what its {} are", need.what());
        }
        // Even where it has told: what has changed meanwhile, or is too long, is not asked for again and again.
        for held in &mut self.waiting {
            held.tried.push(need);
        }
    }

    /// Lets a second pass; true: the server has taken too long to answer a question of ours.
    pub(crate) fn tick(&mut self) -> bool {
        let Some(asking) = &mut self.asking else { return false };
        asking.ticks += 1;
        let is_over = asking.ticks >= PATIENCE;
        if is_over {
            self.answered(false, None);
        }
        is_over
    }

    /// What has become possible; `None`: nothing.
    pub(crate) fn due(&mut self) -> Option<Due> {
        if !std::mem::take(&mut self.is_due) {
            return None;
        }
        let mut due = Due::default();
        let mut first = None;
        for held in std::mem::take(&mut self.waiting) {
            let headers = held.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
            // What is held has been read before.
            let Ok(frame) = ClientFrame::read(&held.frame) else { continue };
            match self.look(&frame, headers, &held.tried) {
                Ok(None) => due.requests.push(held),
                Ok(Some(need)) => {
                    first.get_or_insert(need);
                    self.waiting.push(held);
                }
                Err(refused) => due.refused.push((held.key, refused)),
            }
        }
        if self.waiting.is_empty() && self.asking.as_ref().is_some_and(|asking| !asking.is_asked) {
            self.asking = None;
        }
        due.question = self.question(first);
        Some(due)
    }

    /// What to ask next.
    fn question(&mut self, first: Option<Need>) -> Option<Question> {
        let need = first?;
        let changes = self.changes;
        let asking = self.asking.get_or_insert(Asking {
            need,
            cursor: None,
            pages: 0,
            ticks: 0,
            is_asked: false,
            changes,
        });
        if std::mem::replace(&mut asking.is_asked, true) {
            return None;
        }
        asking.pages += 1;
        let held = self.waiting.first()?;
        let tells = Tells { what: asking.need, is_first: asking.pages == 1, changes: asking.changes };
        Some(Question::new(tells, held, asking.cursor.take()))
    }
}

impl Need {
    fn what(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Versions => "versions",
        }
    }
}

/// The versions that the answer to `server/discover` names.
fn versions(frame: &ServerFrame<'_>) -> Option<Vec<String>> {
    let named: Vec<String> = serde_json::from_str(frame.result_member("supportedVersions")?).ok()?;
    (!named.is_empty() && named.len() <= MOST_VERSIONS).then_some(named)
}

fn next_cursor(frame: &ServerFrame<'_>) -> Option<String> {
    serde_json::from_str(frame.result_member("nextCursor")?).ok()
}
