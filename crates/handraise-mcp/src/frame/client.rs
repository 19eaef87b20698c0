//! Reading what a client sends (S3): every frame, completely, before anything is forwarded.

use std::borrow::Cow;
use std::ops::Range;

use crate::frame::id::Id;
use crate::frame::member::member_named;
use crate::frame::names::{Known, Seen, folds_to, is_look_alike};
use crate::frame::scan::{NotJson, Quoted, Scanner};

/// A frame of the client that may be forwarded: one JSON object whose envelope every parser reads the same.
#[derive(Debug, Clone)]
pub struct ClientFrame<'a> {
    bytes: &'a [u8],
    pub(crate) id: Option<Id<'a>>,
    pub(crate) id_at: Range<usize>,
    method: Option<Cow<'a, str>>,
    pub(crate) params: Option<Params>,
    pub(crate) answer: Option<Answered>,
    has_line_breaks: bool,
}

/// What a response says, as ranges of the frame.
#[derive(Debug, Clone)]
pub(crate) enum Answered {
    Result(Range<usize>),
    Error(Range<usize>),
    /// Both, which no JSON-RPC response has.
    Both,
}

/// Where the values of the members stand that the envelope looks at. Ranges are of the frame.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params {
    pub(crate) at: Range<usize>,
    pub(crate) name: Option<Range<usize>>,
    pub(crate) arguments: Option<Range<usize>>,
    pub(crate) task: Option<Range<usize>>,
    pub(crate) meta: Option<Range<usize>>,
    pub(crate) request_state: Option<Range<usize>>,
    pub(crate) input_responses: Option<Range<usize>>,
}

/// A frame that is not forwarded, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The id as JSON text, where exactly one could be read.
    pub id: Option<String>,
    /// The first few of the ids as JSON text, where there are several.
    pub ids: Vec<String>,
    /// What is wrong.
    pub problem: Problem,
}

/// Why a frame is not forwarded (S3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Not JSON, not UTF-8, an array, or more than one value.
    #[error("a frame is one JSON object")]
    NotOneObject,
    /// A key stands twice in the frame, in `params` or in `_meta`.
    #[error("a key stands twice")]
    DuplicateKey,
    /// A key is an envelope key only after case folding or NUL trimming.
    #[error("a key looks like another one")]
    LookAlike,
    /// The method is `tools/call` only after case folding or NUL trimming, or the tool's name holds a NUL.
    #[error("a name looks like another one")]
    LookAlikeName,
    /// An id is longer than 1 KiB.
    #[error("an id is too long")]
    LongId,
    /// `params` of `tools/call` is no object.
    #[error("params is an object")]
    NoParams,
    /// A line holds a carriage return before its end.
    #[error("a frame is one line")]
    SeveralLines,
    /// The id of a request is neither.
    #[error("the id of a request is a string or a number")]
    NoId,
}

impl Malformed {
    /// What the client is answered: -32600 under its id, or under `null`.
    pub fn reply(&self) -> Vec<u8> {
        let id = self.id.as_deref().unwrap_or("null");
        crate::frame::reply::error(id, crate::frame::reply::INVALID_REQUEST, &self.problem.to_string(), None)
    }
}

/// Whether a method is one of MCP's, so that a key which looks like another one cannot be what it seems. In the params of
/// somebody's own methods `ID` may well be a key of its own.
fn is_of_mcp(method: &str) -> bool {
    const FAMILIES: [&str; 14] = [
        "completion",
        "elicitation",
        "initialize",
        "logging",
        "notifications",
        "ping",
        "prompts",
        "resources",
        "roots",
        "sampling",
        "server",
        "subscriptions",
        "tasks",
        "tools",
    ];
    FAMILIES.contains(&method.split('/').next().unwrap_or_default())
}

/// The longest id, in bytes: ids are kept for as long as their requests are open.
const LONGEST_ID: usize = 1024;
/// How many ids of a frame with several are kept.
const MOST_IDS: usize = 4;

impl<'a> ClientFrame<'a> {
    /// Reads a frame, such as one HTTP body. Lines of stdio: [`ClientFrame::read_line`].
    ///
    /// # Errors
    /// [`Malformed`]: what S3 does not let through.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reading = Reading::default();
        let read = reading.frame(bytes);
        let problem = match read {
            Err(NotJson) => Some(Problem::NotOneObject),
            Ok(()) => reading.problem(bytes),
        };
        let Reading { id, method, params, answer, earlier_ids, has_line_breaks, .. } = reading;
        let (id, id_at) = id.map_or((None, 0..0), |(id, at)| (id, at));
        if let Some(problem) = problem {
            let ids = earlier_ids.iter().copied().chain([id]).flatten();
            let mut ids: Vec<_> =
                ids.filter(|id| id.raw().len() <= LONGEST_ID).map(|id| id.raw().to_owned()).collect();
            let id = if earlier_ids.is_empty() { ids.pop() } else { None };
            return Err(Malformed { id, ids, problem });
        }
        let params = params.filter(|params| !params.at.is_empty());
        Ok(Self { bytes, id, id_at, method, params, answer, has_line_breaks })
    }

    /// Reads a frame that goes on as one line of stdio, without its end.
    ///
    /// A carriage return is white space to JSON, and the end of a line to Python's text streams, Java's `readLine` and
    /// .NET's `ReadLine`. A server on top of those sees a frame of its own in what stands between two of them.
    ///
    /// # Errors
    /// [`Malformed`]: what S3 does not let through.
    pub fn read_line(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let frame = Self::read(bytes)?;
        if frame.has_line_breaks {
            let id = frame.id.map(|id| id.raw().to_owned());
            return Err(Malformed { id, ids: Vec::new(), problem: Problem::SeveralLines });
        }
        Ok(frame)
    }

    /// Refuses a request whose answer could be brought to nobody, as where the answer belongs to the request's own exchange:
    /// its id is `null` or an object, an array, a boolean (MCP: a string or a number, and never `null`). Notifications have no
    /// answer: some libraries write `null` there for none.
    ///
    /// # Errors
    /// [`Malformed`]: [`Problem::NoId`].
    pub fn answerable(self) -> Result<Self, Malformed> {
        let is_none = self.id.is_none() && !self.id_at.is_empty();
        let is_notification = || {
            let is_named = self.method().is_some_and(|method| method.starts_with("notifications/"));
            is_named && self.text(self.id_at.clone()) == "null"
        };
        if is_none && self.method.is_some() && !is_notification() {
            return Err(Malformed { id: None, ids: Vec::new(), problem: Problem::NoId });
        }
        Ok(self)
    }

    /// A frame of these parts, which somebody has read.
    pub(crate) fn from_parts(
        bytes: &'a [u8],
        id: Option<Id<'a>>,
        id_at: Range<usize>,
        method: Option<Cow<'a, str>>,
        params: Option<Params>,
        answer: Option<Answered>,
    ) -> Self {
        Self { bytes, id, id_at, method, params, answer, has_line_breaks: false }
    }

    /// Whether a carriage return or a line feed stands in the frame, which is white space there. Of a frame that was
    /// [read](Self::read).
    pub fn has_line_breaks(&self) -> bool {
        self.has_line_breaks
    }

    /// The frame's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The frame's id, if it is a string or a number.
    pub fn id(&self) -> Option<Id<'a>> {
        self.id
    }

    /// The method, unescaped; responses have none.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Whether the frame answers a request of the server.
    pub fn is_response(&self) -> bool {
        self.answer.is_some() && self.method.is_none()
    }

    /// The text of a range that has been scanned.
    pub(crate) fn text(&self, range: Range<usize>) -> &'a str {
        std::str::from_utf8(&self.bytes[range]).unwrap_or_default()
    }

    /// The JSON text of the first member of `params` with this name, whatever it is.
    pub(crate) fn param_named(&self, name: &str) -> Option<&'a str> {
        member_named(self.text(self.params.as_ref()?.at.clone()), name)
    }

    /// The JSON text of a member of `params`.
    pub(crate) fn param(&self, member: impl Fn(&Params) -> Option<&Range<usize>>) -> Option<&'a str> {
        Some(self.text(self.params.as_ref().and_then(member)?.clone()))
    }
}

/// What has been read of a frame so far.
#[derive(Default)]
struct Reading<'a> {
    id: Option<(Option<Id<'a>>, Range<usize>)>,
    /// The first of the ids before that, of a frame with several.
    earlier_ids: Vec<Option<Id<'a>>>,
    method: Option<Cow<'a, str>>,
    /// An empty range: `params` is no object.
    params: Option<Params>,
    answer: Option<Answered>,
    in_frame: Option<Problem>,
    in_params: Option<Problem>,
    has_line_breaks: bool,
}

impl<'a> Reading<'a> {
    fn frame(&mut self, bytes: &'a [u8]) -> Result<(), NotJson> {
        let mut scanner = Scanner::new(bytes);
        let mut seen = Seen::default();
        scanner.space();
        scanner.object(|scanner, key, _| {
            let name = Known::of(key);
            if let Some(problem) = problem_of(key, name, &mut seen) {
                self.in_frame.get_or_insert(problem);
            }
            match name {
                Some(Known::Id) => {
                    let start = scanner.at();
                    let is_number = matches!(scanner.peek(), Some(b'-' | b'0'..=b'9'));
                    let id = Id::scan(scanner)?;
                    // Of a number that goes on as none does, as in `07`, nobody knows which one was meant.
                    if is_number
                        && !matches!(scanner.peek(), Some(b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n'))
                    {
                        return Err(NotJson);
                    }
                    if let Some((id, _)) = self.id.replace((id, start..scanner.at()))
                        && self.earlier_ids.len() < MOST_IDS
                    {
                        self.earlier_ids.push(id);
                    }
                }
                Some(Known::Method) if scanner.peek() == Some(b'"') => {
                    self.method = Some(scanner.string()?.text());
                }
                Some(Known::Params) if scanner.peek() == Some(b'{') => self.params(scanner)?,
                Some(Known::Params) => {
                    scanner.value()?;
                    self.params.get_or_insert_default();
                }
                None if key.is("result") => {
                    let result = scanner.value()?;
                    self.answer =
                        Some(self.answer.take().map_or(Answered::Result(result), |_| Answered::Both));
                }
                None if key.is("error") => {
                    let error = scanner.value()?;
                    self.answer = Some(self.answer.take().map_or(Answered::Error(error), |_| Answered::Both));
                }
                _ => {
                    scanner.value()?;
                }
            }
            Ok(())
        })?;
        let is_whole = scanner.is_at_end();
        self.has_line_breaks = scanner.has_line_breaks();
        if is_whole { Ok(()) } else { Err(NotJson) }
    }

    fn params(&mut self, scanner: &mut Scanner<'a>) -> Result<(), NotJson> {
        let mut params = Params::default();
        let mut seen = Seen::default();
        let start = scanner.at();
        scanner.object(|scanner, key, _| {
            let name = Known::of(key);
            if let Some(problem) = problem_of(key, name, &mut seen) {
                self.note_in_params(problem);
            }
            let value = if name == Some(Known::Meta) && scanner.peek() == Some(b'{') {
                self.meta(scanner)?
            } else {
                scanner.value()?
            };
            match name {
                Some(Known::Name) => params.name = Some(value),
                Some(Known::Arguments) => params.arguments = Some(value),
                Some(Known::Task) => params.task = Some(value),
                Some(Known::Meta) => params.meta = Some(value),
                Some(Known::RequestState) => params.request_state = Some(value),
                Some(Known::InputResponses) => params.input_responses = Some(value),
                Some(Known::Jsonrpc | Known::Id | Known::Method | Known::Params) | None => {}
            }
            Ok(())
        })?;
        params.at = start..scanner.at();
        self.params = Some(params);
        Ok(())
    }

    /// The members of `_meta`, which say in which era a request speaks.
    fn meta(&mut self, scanner: &mut Scanner<'a>) -> Result<Range<usize>, NotJson> {
        let start = scanner.at();
        let mut seen = Seen::default();
        scanner.object(|scanner, key, _| {
            if !seen.note(key) {
                self.note_in_params(Problem::DuplicateKey);
            }
            scanner.value().map(drop)
        })?;
        Ok(start..scanner.at())
    }

    /// A key twice is wrong in the params of every method, and outweighs what is wrong in some.
    fn note_in_params(&mut self, problem: Problem) {
        if problem == Problem::DuplicateKey {
            self.in_params = Some(problem);
        }
        self.in_params.get_or_insert(problem);
    }

    /// What is wrong with a frame that is one object.
    fn problem(&self, bytes: &[u8]) -> Option<Problem> {
        let method = self.method.as_deref().unwrap_or_default();
        if self.in_frame.is_some() {
            return self.in_frame;
        }
        let id = self.id.as_ref().and_then(|(id, _)| *id);
        if id.is_some_and(|id| id.raw().len() > LONGEST_ID) {
            return Some(Problem::LongId);
        }
        if method != "tools/call" && folds_to(method, "tools/call") {
            return Some(Problem::LookAlikeName);
        }
        if self.in_params == Some(Problem::DuplicateKey) || (is_of_mcp(method) && self.in_params.is_some()) {
            return self.in_params;
        }
        if method == "tools/call" {
            let params = self.params.as_ref()?;
            if params.at.is_empty() {
                return Some(Problem::NoParams);
            }
            let name = params.name.as_ref().and_then(|name| bytes.get(name.clone()))?;
            let name = Scanner::new(name).string().ok()?;
            // A NUL is a control character, and stands in no string but as an escape.
            return (name.is_escaped() && name.text().contains('\0')).then_some(Problem::LookAlikeName);
        }
        None
    }
}

/// What is wrong with a key of a frame or of its params.
fn problem_of<'a>(key: Quoted<'a>, name: Option<Known>, seen: &mut Seen<'a>) -> Option<Problem> {
    if let Some(name) = name {
        return (!seen.note_name(name)).then_some(Problem::DuplicateKey);
    }
    if !seen.note(key) {
        return Some(Problem::DuplicateKey);
    }
    is_look_alike(key).then_some(Problem::LookAlike)
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
