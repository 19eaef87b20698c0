//! A server at a URL that gives the answers of the corpus, in each way in which HTTP brings an answer.

use std::{collections::BTreeMap, fmt::Write as _, net::TcpStream, ops::Range, sync::Mutex};

use super::frames::{FROM_CLIENT, FROM_SERVER};
use crate::support::{
    Asked, Rig,
    rig::{begin_events, respond, write},
};

/// What is said on the stream of a session's call before its answer.
pub(crate) const BETWEEN: [&str; 2] = [
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"z":1.0,"a":[1e2,-0,"é👩‍🚀"]}}}"#,
    r#" { "params" : { "data":"\u00fc\/" , "level":"debug" },	"method":"notifications\/message","jsonrpc":"2.0" } "#,
];

/// How an answer comes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    /// As one body.
    Body,
    /// On a stream, in pieces of so many bytes, whose lines end like this.
    Stream { piece: usize, end: &'static str },
}

/// Each of the ways in which a stream may be written.
pub(crate) const STREAMS: [How; 3] = [
    How::Stream { piece: 1, end: "\n" },
    How::Stream { piece: 7, end: "\r\n" },
    How::Stream { piece: 1 << 20, end: "\r" },
];

/// Where an id stands in a frame of the corpus, and its text.
pub(crate) fn id_of(frame: &str) -> Option<(Range<usize>, &str)> {
    let at = frame.find("\"id\"")? + 4;
    let start = at + frame[at..].find(|first: char| first != ':' && !first.is_whitespace())?;
    let end = start + frame[start..].find([',', '}'])?;
    Some((start..end, &frame[start..end]))
}

/// The frame with another id, and with a subscription's tag that is its id changed alike.
pub(crate) fn under(frame: &str, id: &str) -> String {
    let (at, own) = id_of(frame).unwrap();
    let tag = |id: &str| format!("subscriptionId\":{id}}}");
    let before = frame[..at.start].replace(&tag(own), &tag(id));
    let after = frame[at.end..].replace(&tag(own), &tag(id));
    format!("{before}{id}{after}")
}

pub(crate) fn is_modern(frame: &str) -> bool {
    frame.contains("io.modelcontextprotocol/protocolVersion")
}

pub(crate) fn is_response(frame: &str) -> bool {
    (frame.contains("\"result\"") || frame.contains("\"error\""))
        && id_of(frame).is_some_and(|(_, id)| !matches!(id, "null" | "true"))
}

/// The request that a response of the corpus answers: the client's own, where there is one.
pub(crate) fn request_of(response: &str) -> String {
    let (_, id) = id_of(response).unwrap();
    let own = FROM_CLIENT.iter().find(|frame| id_of(frame).is_some_and(|(_, own)| own == id));
    own.map_or_else(|| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#), |frame| (*frame).to_owned())
}

/// A request of either era for an answer that is large, and that answer, under the same id.
pub(crate) fn large(is_modern: bool) -> (String, String) {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let meta = if is_modern { meta } else { "" };
    (
        format!(r#"{{"jsonrpc":"2.0","id":"large","method":"x/large","params":{{{meta}}}}}"#),
        large_under("\"large\""),
    )
}

fn large_under(id: &str) -> String {
    let text = "é👩‍🚀\u{2028}\\u00e9\\n".repeat(100_000);
    format!(r#"{{"result":{{"n":1.0,"text":"{text}","m":1e0}},"id":{id},"jsonrpc":"2.0"}}"#)
}

/// The server. What is said outside of requests is said on the session's own stream, where there is to be one.
pub(crate) fn answering(how: How, general: bool, between: Vec<String>) -> Rig {
    let asked_before = Mutex::new(BTreeMap::<String, usize>::new());
    Rig::start(move |asked, stream| {
        let Some((_, id)) = id_of(&asked.body) else {
            return outside(asked, stream, general);
        };
        if asked.body.contains("x/large") {
            // In pieces of its own: byte by byte it would take its time.
            let how = if matches!(how, How::Body) { how } else { How::Stream { piece: 4_093, end: "\n" } };
            return answer(stream, how, &[], &large_under(id));
        }
        // A request that was numbered anew is known by what else stands in it.
        let client = FROM_CLIENT.iter().find(|frame| is_modern(frame) && under(frame, id) == asked.body);
        let own = client.map_or(id, |frame| id_of(frame).unwrap().1);
        let answers = |frame: &&&str| is_response(frame) && id_of(frame).unwrap().1 == own;
        // Two answers have one id: the second comes when it is asked for again.
        let mut asked_before = asked_before.lock().unwrap();
        let before = asked_before.entry(own.to_owned()).or_insert(0);
        let said = FROM_SERVER.iter().filter(answers).nth(*before).unwrap();
        *before += 1;
        drop(asked_before);
        let is_opening = asked.body.contains("\"initialize\"");
        let between = if client.is_some() || is_opening { &[] } else { &between[..] };
        answer(stream, how, between, &under(said, id));
    })
}

/// What answers nothing: the session's own stream, a notification, an end.
fn outside(asked: &Asked, stream: &mut TcpStream, general: bool) {
    match asked.method.as_str() {
        "GET" if general => {
            begin_events(stream, "");
            for frame in FROM_SERVER.iter().filter(|frame| !is_response(frame)) {
                write(stream, format!("event: message\ndata: {frame}\n\n").as_bytes());
            }
            let _ = std::io::Read::read(stream, &mut [0]);
        }
        "GET" => respond(stream, 405, "", ""),
        _ => respond(stream, 202, "", ""),
    }
}

fn answer(stream: &mut TcpStream, how: How, between: &[String], frame: &str) {
    let session = "Mcp-Session-Id: s\r\n";
    match how {
        How::Body => respond(stream, 200, &format!("Content-Type: application/json\r\n{session}"), frame),
        How::Stream { piece, end } => {
            begin_events(stream, session);
            // A comment, an event that says nothing but where it stands, and one that is no message.
            let mut text = ": comment\n\nid: 7-0\nretry: 10\ndata:\n\nevent: other\ndata: {}\n\n".to_owned();
            for (at, frame) in between.iter().map(String::as_str).chain([frame]).enumerate() {
                write!(text, "event: message\nid: 7-{}\ndata: {frame}\n\n", at + 1).unwrap();
            }
            for piece in text.replace('\n', end).as_bytes().chunks(piece) {
                write(stream, piece);
            }
        }
    }
}
