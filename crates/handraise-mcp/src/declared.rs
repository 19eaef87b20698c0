//! What a client declared, and in which era a request speaks (mcp.md §1, §2).

use handraise_core::words::{Declared, Era};

use crate::frame::{ClientFrame, Quoted, Scanner, ServerFrame, member_named, members_named};
use crate::record::MAX_NAME_BYTES;

/// The first protocol version whose requests describe themselves. Versions compare as text.
pub const FIRST_MODERN: &str = "2026-07-28";

/// The first protocol version with elicitation.
const FIRST_ASKED: &str = "2025-06-18";

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// Who is behind a request, as far as it was declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    /// The protocol generation of the request.
    pub era: Era,
    /// What the client can be asked with.
    pub declared: Declared,
    /// The protocol version, cut after [`MAX_NAME_BYTES`].
    pub version: Option<String>,
    /// The client's name for itself, cut after [`MAX_NAME_BYTES`]. A claim.
    pub client: Option<String>,
}

/// What `capabilities` (JSON text) declare about elicitation. `None`: nothing was said, which is never a no.
///
/// Total: whatever is malformed declares nothing, and never enables a question.
pub fn declared(capabilities: Option<&str>) -> Declared {
    let Some(capabilities) = capabilities else { return Declared::Unknown };
    let elicitation = match members_named(capabilities, "elicitation").as_deref() {
        Some([elicitation]) if is_object(elicitation) => *elicitation,
        _ => return Declared::None,
    };
    let (Some(form), Some(url)) = (members_named(elicitation, "form"), members_named(elicitation, "url"))
    else {
        return Declared::None;
    };
    // A mode that stands twice says nothing that every reader agrees on.
    let names = |mode: &[&str]| matches!(mode, [only] if is_object(only));
    match (names(&form), names(&url)) {
        _ if form.is_empty() && url.is_empty() => Declared::Bare,
        (true, true) => Declared::Both,
        (true, false) => Declared::Form,
        (false, true) => Declared::Url,
        (false, false) => Declared::None,
    }
}

fn is_object(json: &str) -> bool {
    json.starts_with('{')
}

/// The string that a JSON text is, cut after [`MAX_NAME_BYTES`].
fn name(json: &str) -> Option<String> {
    let mut text = Scanner::new(json.as_bytes()).string().ok().map(Quoted::text)?.into_owned();
    text.truncate(text.floor_char_boundary(MAX_NAME_BYTES));
    Some(text)
}

fn client_name(info: Option<&str>) -> Option<String> {
    name(member_named(info?, "name")?)
}

/// The party of a request that describes itself; `None` when it does not, whatever its connection is.
///
/// Only the version in `_meta` decides, never a header and never another request.
pub(crate) fn modern(frame: &ClientFrame<'_>) -> Option<Party> {
    let version = modern_version(frame)?;
    let meta = frame.param(|params| params.meta.as_ref())?;
    Some(Party {
        era: Era::Mrtr,
        declared: declared(member_named(meta, META_CAPABILITIES)),
        version: Some(version),
        client: client_name(member_named(meta, META_CLIENT)),
    })
}

/// The version that a request names which describes itself; `None`: it belongs to a session that `initialize` opened.
pub fn modern_version(frame: &ClientFrame<'_>) -> Option<String> {
    let version = frame.meta(META_VERSION).and_then(name)?;
    is_modern_version(&version).then_some(version)
}

/// Whether requests of this protocol version describe themselves. Versions compare as texts.
pub fn is_modern_version(version: &str) -> bool {
    version >= FIRST_MODERN
}

/// Whether a request says what its client can do, as every one of the modern era must.
pub fn has_capabilities(frame: &ClientFrame<'_>) -> bool {
    frame.meta(META_CAPABILITIES).is_some_and(is_object)
}

/// Whether a request describes itself.
pub(crate) fn is_modern(frame: &ClientFrame<'_>) -> bool {
    modern_version(frame).is_some()
}

/// Errors that only a modern server has: a header, a capability or a version that it does not like.
const MODERN_ERRORS: [&str; 3] = ["-32020", "-32021", "-32022"];

/// What the first requests of a connection have shown of both sides.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    opening: Option<Opening>,
    upstream: Shown,
    /// The upstream's name for itself, cut after [`MAX_NAME_BYTES`]. A claim.
    server: Option<String>,
}

/// In which era the upstream has shown itself. What it has opened a session with, or said about itself, decides; never the
/// version that stands in an `initialize`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Shown {
    /// It has answered nothing that would tell.
    #[default]
    Nothing,
    /// It opened a session, or knew no `server/discover`.
    Legacy,
    /// It answered `server/discover`, or handed back a question. One that also opens sessions stays modern.
    Modern,
}

#[derive(Debug)]
struct Opening {
    declared: Declared,
    client: Option<String>,
    requested: Option<String>,
    negotiated: Option<String>,
}

impl Handshake {
    /// Takes an `initialize` request.
    pub(crate) fn requested(&mut self, frame: &ClientFrame<'_>) {
        let param = |name| frame.param_named(name);
        self.opening = Some(Opening {
            declared: declared(param("capabilities")),
            client: client_name(param("clientInfo")),
            requested: param("protocolVersion").and_then(name),
            negotiated: None,
        });
    }

    /// Takes the answer to `initialize`: its result, if it has one.
    pub(crate) fn answered(&mut self, result: Option<&str>) {
        let Some(result) = result else { return };
        if self.upstream == Shown::Nothing {
            self.upstream = Shown::Legacy;
        }
        self.note_server(result);
        if let Some(opening) = &mut self.opening {
            opening.negotiated = member_named(result, "protocolVersion").and_then(name);
        }
    }

    /// Takes the answer to `server/discover`. A legacy server has an error for it, with whatever code.
    pub(crate) fn was_asked_to_discover(&mut self, answer: &ServerFrame<'_>) {
        let code = || member_named(answer.error()?, "code");
        if let Some(result) = answer.result() {
            self.note_server(result);
        }
        if answer.result().is_some() || code().is_some_and(|code| MODERN_ERRORS.contains(&code)) {
            self.discovered();
        } else if self.upstream == Shown::Nothing {
            self.upstream = Shown::Legacy;
        }
    }

    /// What the upstream calls itself.
    pub(crate) fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    fn note_server(&mut self, result: &str) {
        let named = member_named(result, "serverInfo").and_then(|info| member_named(info, "name"));
        self.server = named.and_then(name).or_else(|| self.server.take());
    }

    /// The upstream answered as only a modern one does.
    pub(crate) fn discovered(&mut self) {
        self.upstream = Shown::Modern;
    }

    /// Whether the upstream has shown that it is legacy, and nothing modern since. False while nothing is known.
    pub(crate) fn upstream_is_legacy(&self) -> bool {
        self.upstream == Shown::Legacy
    }

    /// Whether the connection was opened by `initialize`.
    pub(crate) fn is_opened(&self) -> bool {
        self.opening.is_some()
    }

    /// The party of a request that does not describe itself. A connection that nobody opened declares nothing.
    pub(crate) fn party(&self) -> Party {
        let Some(opening) = &self.opening else {
            return Party { era: Era::Push, declared: Declared::Unknown, version: None, client: None };
        };
        let version = opening.negotiated.clone().or_else(|| opening.requested.clone());
        let is_before = version.as_deref().is_some_and(|version| version < FIRST_ASKED);
        let declared = if is_before { Declared::None } else { opening.declared };
        Party { era: Era::Push, declared, version, client: opening.client.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_is_read_from_every_shape() {
        for (elicitation, expected) in [
            ("{}", Declared::Bare),
            (r#"{"applyDefaults":true}"#, Declared::Bare),
            (r#"{"form":{}}"#, Declared::Form),
            (r#"{"form":{"applyDefaults":true}}"#, Declared::Form),
            (r#"{"url":{}}"#, Declared::Url),
            (r#"{"form":{},"url":{}}"#, Declared::Both),
            (r#"{"url":{},"x":1,"form":{}}"#, Declared::Both),
            (r#"{"f\u006frm":{}}"#, Declared::Form),
            (r#"{"form":null}"#, Declared::None),
            (r#"{"form":true}"#, Declared::None),
            (r#"{"form":[]}"#, Declared::None),
            (r#"{"form":"yes"}"#, Declared::None),
            (r#"{"form":1,"url":{}}"#, Declared::Url),
            (r#"{"form":{},"url":null}"#, Declared::Form),
            (r#"{"form":null,"url":0}"#, Declared::None),
            (r#"{"form":null,"other":{}}"#, Declared::None),
            (r#"{"form":{},"form":{}}"#, Declared::None),
            (r#"{"form":{},"form":null,"url":{}}"#, Declared::Url),
            (r#"{"Form":{}}"#, Declared::Bare),
            ("null", Declared::None),
            ("true", Declared::None),
            ("[]", Declared::None),
            (r#""form""#, Declared::None),
            ("0", Declared::None),
        ] {
            let capabilities = format!(r#"{{"roots":{{}},"elicitation":{elicitation}}}"#);
            assert_eq!(declared(Some(&capabilities)), expected, "{elicitation}");
        }
        for capabilities in ["{}", "null", "[]", "7", r#""x""#, r#"{"Elicitation":{}}"#, "", "{"] {
            assert_eq!(declared(Some(capabilities)), Declared::None, "{capabilities}");
        }
        let twice = r#"{"elicitation":{},"elicitation":{"form":{}}}"#;
        assert_eq!(declared(Some(twice)), Declared::None);
        assert_eq!(declared(None), Declared::Unknown);
    }

    fn opened(params: &str, result: Option<&str>) -> Party {
        let text = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{params}}}"#);
        let mut handshake = Handshake::default();
        handshake.requested(&ClientFrame::read(text.as_bytes()).unwrap());
        if let Some(result) = result {
            handshake.answered(Some(result));
        }
        handshake.party()
    }

    #[test]
    fn the_negotiated_version_counts() {
        let form = r#"{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{}}},"clientInfo":{"name":"c"}}"#;
        for (result, declared, version) in [
            (None, Declared::Form, "2025-11-25"),
            (Some(r#"{"protocolVersion":"2025-06-18"}"#), Declared::Form, "2025-06-18"),
            (Some(r#"{"protocolVersion":"2025-03-26"}"#), Declared::None, "2025-03-26"),
            (Some(r#"{"protocolVersion":"2024-11-05"}"#), Declared::None, "2024-11-05"),
            (Some(r#"{"protocolVersion":7}"#), Declared::Form, "2025-11-25"),
            (Some("{}"), Declared::Form, "2025-11-25"),
        ] {
            let party = opened(form, result);
            assert_eq!((party.declared, party.version.as_deref()), (declared, Some(version)), "{result:?}");
            assert_eq!(party.client.as_deref(), Some("c"));
        }
    }

    #[test]
    fn a_connection_opened_by_initialize_is_push_whatever_version_it_carries() {
        let party = opened(r#"{"protocolVersion":"2026-07-28","capabilities":{"elicitation":{}}}"#, None);
        assert_eq!((party.era, party.declared), (Era::Push, Declared::Bare));
        assert_eq!(Handshake::default().party().declared, Declared::Unknown);
        assert_eq!(opened("{}", None).declared, Declared::Unknown);
    }

    fn of_meta(meta: &str) -> Option<Party> {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{{"name":"t","_meta":{meta}}}}}"#
        );
        modern(&ClientFrame::read(text.as_bytes()).unwrap())
    }

    #[test]
    fn a_request_is_modern_by_its_own_version_alone() {
        for meta in [
            "{}",
            "null",
            "[]",
            r#"{"io.modelcontextprotocol/protocolVersion":null}"#,
            r#"{"io.modelcontextprotocol/protocolVersion":20260728}"#,
            r#"{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}"#,
            r#"{"protocolVersion":"2026-07-28"}"#,
        ] {
            assert_eq!(of_meta(meta), None, "{meta}");
        }
        let bare = of_meta(r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#).unwrap();
        assert_eq!((bare.era, bare.declared), (Era::Mrtr, Declared::Unknown));
        let full = of_meta(
            r#"{"io.modelcontextprotocol/protocolVersion":"2027-01-01","io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}}}}"#,
        );
        let expected = Party {
            era: Era::Mrtr,
            declared: Declared::Both,
            version: Some("2027-01-01".to_owned()),
            client: Some("c".to_owned()),
        };
        assert_eq!(full, Some(expected));
    }

    #[test]
    fn s39_names_are_cut() {
        let params = format!(r#"{{"capabilities":{{}},"clientInfo":{{"name":"{}"}}}}"#, "é".repeat(500));
        assert_eq!(opened(&params, None).client.map(|name| name.len()), Some(MAX_NAME_BYTES));
    }
}
