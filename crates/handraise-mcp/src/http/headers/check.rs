//! Whether the headers of a request say what its body says (S3).

use std::fmt;

use crate::declared::modern_version;
use crate::frame::{ClientFrame, Id, reply};
use crate::http::headers::tool::{Mirror, Mirrored};
use crate::http::headers::{METHOD, NAME, PARAM_PREFIX, PROTOCOL_VERSION, ToolHeaders, decode, name};
use crate::visible::shortened;

/// The protocol's code for headers that do not mirror the body.
pub const HEADER_MISMATCH: i32 = -32020;

/// How much of a value is shown, in characters.
const SHOWN: usize = 128;

/// A request whose headers and body differ. Arguments are not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderMismatch {
    header: String,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Missing,
    Several,
    Undecodable,
    Differs {
        header: String,
        body: String,
    },
    /// The value is an argument's.
    ArgumentDiffers,
    /// The body has no such value.
    NotInBody,
}

impl fmt::Display for HeaderMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { header: name, what } = self;
        write!(f, "Header mismatch: ")?;
        match what {
            What::Missing => write!(f, "{name} header is missing"),
            What::Several => write!(f, "{name} header stands more than once"),
            What::Undecodable => write!(f, "{name} header value contains invalid characters"),
            What::Differs { header, body } => {
                write!(f, "{name} header value '{header}' does not match body value '{body}'")
            }
            What::ArgumentDiffers => write!(f, "{name} header value does not match body value"),
            What::NotInBody => write!(f, "{name} header has no value in the body"),
        }
    }
}

impl std::error::Error for HeaderMismatch {}

impl HeaderMismatch {
    /// The answer, which travels with HTTP status 400: -32020 under the request's id.
    pub fn reply(&self, id: Option<Id<'_>>) -> Vec<u8> {
        reply::error(id.map_or("null", Id::raw), HEADER_MISMATCH, &self.to_string(), None)
    }
}

/// Compares the headers of an HTTP request with the frame that it carries.
///
/// A frame that describes itself must have every header that mirrors it. A frame of a legacy session needs none, and
/// what is there must still be true, except for the version, which was negotiated. `tool` are the headers of the tool
/// that is called, as far as they are known; others pass.
///
/// # Errors
/// [`HeaderMismatch`].
pub fn check<'h>(
    frame: &ClientFrame<'_>,
    headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
    tool: Option<&ToolHeaders>,
) -> Result<(), HeaderMismatch> {
    let given: Vec<(&str, &[u8])> = headers.into_iter().filter(|(name, _)| is_mirror(name)).collect();
    let given = Given(&given);
    let version = modern_version(frame);
    let is_required = version.is_some();
    if !is_required && given.0.iter().all(|(name, _)| name.eq_ignore_ascii_case(PROTOCOL_VERSION)) {
        return Ok(());
    }
    if let Some(version) = version {
        given.compare(PROTOCOL_VERSION, Some(version), true, false)?;
    }
    let Some(method) = frame.method() else { return Ok(()) };
    given.compare(METHOD, Some(method.to_owned()), is_required, false)?;
    let named = name(frame);
    let requires_name = is_required && named.is_some();
    given.compare(NAME, named, requires_name, true)?;
    if let ("tools/call", Some(tool)) = (method, tool) {
        let arguments = frame.param(|params| params.arguments.as_ref());
        for mirror in tool.mirrors() {
            given.compare_argument(mirror, arguments, is_required)?;
        }
    }
    Ok(())
}

/// Whether a header of this name mirrors something of a request's body.
pub fn is_mirror(name: &str) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    is(PROTOCOL_VERSION) || is(METHOD) || is(NAME) || is_param(name)
}

/// Whether a header of this name mirrors an argument.
pub fn is_param(name: &str) -> bool {
    name.get(..PARAM_PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(PARAM_PREFIX))
}

/// The headers that mirror something.
struct Given<'a, 'h>(&'a [(&'h str, &'h [u8])]);

impl<'h> Given<'_, 'h> {
    fn get(&self, name: &str) -> Result<Option<&'h [u8]>, HeaderMismatch> {
        let mut found = self.0.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| *value);
        if found.next().is_some() { Err(mismatch(name, What::Several)) } else { Ok(value) }
    }

    fn compare(
        &self,
        name: &str,
        body: Option<String>,
        is_required: bool,
        is_encoded: bool,
    ) -> Result<(), HeaderMismatch> {
        let Some(value) = self.get(name)? else {
            return if is_required { Err(mismatch(name, What::Missing)) } else { Ok(()) };
        };
        let text = if is_encoded { decode(value) } else { String::from_utf8(value.to_vec()).ok() };
        let text = text.ok_or_else(|| mismatch(name, What::Undecodable))?;
        match body {
            Some(body) if body == text => Ok(()),
            Some(body) => {
                let what = What::Differs { header: shortened(&text, SHOWN), body: shortened(&body, SHOWN) };
                Err(mismatch(name, what))
            }
            // A header that mirrors nothing says nothing about this method.
            None => Ok(()),
        }
    }

    fn compare_argument(
        &self,
        mirror: &Mirror,
        arguments: Option<&str>,
        is_required: bool,
    ) -> Result<(), HeaderMismatch> {
        let name = &*mirror.header;
        let body = mirror.in_arguments(arguments);
        let Some(value) = self.get(name)? else {
            let is_missing = is_required && body != Mirrored::Nothing;
            return if is_missing { Err(mismatch(name, What::Missing)) } else { Ok(()) };
        };
        let text = decode(value).ok_or_else(|| mismatch(name, What::Undecodable))?;
        let is_equal = match body {
            Mirrored::Nothing => return Err(mismatch(name, What::NotInBody)),
            Mirrored::Text(body) => body == text,
            Mirrored::Number(body) => is_same_number(&body, &text),
            Mirrored::Ambiguous => false,
        };
        if is_equal { Ok(()) } else { Err(mismatch(name, What::ArgumentDiffers)) }
    }
}

/// Numbers are compared as numbers: `42.0` is 42.
fn is_same_number(body: &serde_json::Number, text: &str) -> bool {
    let Ok(text) = serde_json::from_str::<serde_json::Number>(text) else { return false };
    *body == text || ((body.is_f64() || text.is_f64()) && body.as_f64() == text.as_f64())
}

fn mismatch(name: &str, what: What) -> HeaderMismatch {
    // As the protocol spells them.
    let header = match name {
        PROTOCOL_VERSION => "MCP-Protocol-Version".to_owned(),
        METHOD => "Mcp-Method".to_owned(),
        NAME => "Mcp-Name".to_owned(),
        _ => name.replacen(PARAM_PREFIX, "Mcp-Param-", 1),
    };
    HeaderMismatch { header, what }
}
