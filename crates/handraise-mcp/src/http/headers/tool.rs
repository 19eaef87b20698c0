//! Arguments of tools as headers: what `x-mcp-header` in a tool's `inputSchema` asks for.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::frame::{ServerFrame, members_named};
use crate::http::headers::{Header, PARAM_PREFIX, encode, string};

const ANNOTATION: &str = "x-mcp-header";

/// How many arguments of one tool become headers at most.
const MOST_HEADERS: usize = 64;
/// How long the name of such a header may be, in bytes.
const LONGEST_NAME: usize = 128;
/// How many tools with such headers are remembered.
const MOST_TOOLS: usize = 4096;
/// How many bytes of names and headers are kept of all tools together.
const MOST_BYTES: usize = 4 << 20;

/// Which arguments of a tool become headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolHeaders {
    mirrors: Vec<Mirror>,
}

/// One argument that becomes a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirror {
    /// The header's name, in lower case.
    pub(super) header: String,
    /// The keys that lead to the argument.
    path: Vec<String>,
}

/// Why a tool's headers cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAnnotation {
    /// The schema is no JSON object.
    #[error("the schema is no object")]
    NoSchema,
    /// It stands where no argument is.
    #[error("x-mcp-header stands outside of properties")]
    Misplaced,
    /// The name is no token of HTTP, or is too long.
    #[error("x-mcp-header is no name of a header")]
    NoName,
    /// Two arguments want the same header.
    #[error("x-mcp-header {0:?} stands twice")]
    Duplicate(String),
    /// The argument is no string, integer or boolean.
    #[error("x-mcp-header {0:?} is on an argument that is no string, integer or boolean")]
    NotPrimitive(String),
    /// There are too many.
    #[error("more than {MOST_HEADERS} arguments have x-mcp-header")]
    TooMany,
}

/// What a header mirrors of the arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Mirrored {
    /// The argument is absent or `null`, or no primitive: there is no header.
    Nothing,
    /// The header's text.
    Text(String),
    /// A number, as it is compared.
    Number(serde_json::Number),
    /// A key stands twice on the way: readers differ in what the argument is.
    Ambiguous,
}

impl ToolHeaders {
    /// Reads a tool's `inputSchema`, given as JSON text.
    ///
    /// # Errors
    /// When an annotation breaks a rule of the protocol. A tool with such a schema has no headers that both sides agree
    /// on.
    pub fn of_schema(schema: &str) -> Result<Self, InvalidAnnotation> {
        if !schema.contains(ANNOTATION) && !schema.contains('\\') {
            return Ok(Self::default());
        }
        let Ok(Value::Object(schema)) = serde_json::from_str(schema) else {
            return Err(InvalidAnnotation::NoSchema);
        };
        let mut headers = Self::default();
        headers.collect(&schema, &mut Vec::new())?;
        Ok(headers)
    }

    /// Collects the annotations of one level: the schema of an object.
    fn collect(
        &mut self,
        schema: &Map<String, Value>,
        path: &mut Vec<String>,
    ) -> Result<(), InvalidAnnotation> {
        for (key, value) in schema {
            match key.as_str() {
                "properties" => {
                    let Value::Object(properties) = value else { continue };
                    for (name, property) in properties {
                        let Value::Object(property) = property else { continue };
                        path.push(name.clone());
                        self.collect(property, path)?;
                        path.pop();
                    }
                }
                ANNOTATION => self.mirror(value, schema, path)?,
                // Data, and not schemas.
                "default" | "const" | "enum" | "examples" | "required" | "dependentRequired" => {}
                _ if holds_annotation(value) => return Err(InvalidAnnotation::Misplaced),
                _ => {}
            }
        }
        Ok(())
    }

    fn mirror(
        &mut self,
        name: &Value,
        schema: &Map<String, Value>,
        path: &[String],
    ) -> Result<(), InvalidAnnotation> {
        if path.is_empty() {
            return Err(InvalidAnnotation::Misplaced);
        }
        let name = name.as_str().filter(|name| is_token(name)).ok_or(InvalidAnnotation::NoName)?;
        let header = format!("{PARAM_PREFIX}{}", name.to_ascii_lowercase());
        if self.mirrors.iter().any(|mirror| mirror.header == header) {
            return Err(InvalidAnnotation::Duplicate(name.to_owned()));
        }
        if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return Err(InvalidAnnotation::NotPrimitive(name.to_owned()));
        }
        if self.mirrors.len() == MOST_HEADERS {
            return Err(InvalidAnnotation::TooMany);
        }
        self.mirrors.push(Mirror { header, path: path.to_vec() });
        Ok(())
    }

    /// How many bytes the headers have, and the ways to their arguments.
    fn bytes(&self) -> usize {
        let way = |path: &[String]| path.iter().map(|name| size_of::<String>() + name.len()).sum::<usize>();
        self.mirrors.iter().map(|mirror| mirror.header.len() + way(&mirror.path)).sum()
    }

    /// Whether no argument becomes a header.
    pub fn is_empty(&self) -> bool {
        self.mirrors.is_empty()
    }

    /// Whether an argument becomes a header of this name, which is in lower case.
    pub fn mirrors_as(&self, header: &str) -> bool {
        self.mirrors.iter().any(|mirror| mirror.header == header)
    }

    /// The headers of a call with these arguments, which are JSON text.
    pub(super) fn of(&self, arguments: &str) -> Vec<Header> {
        let header = |mirror: &Mirror| {
            let value = match mirror.last_in(arguments)? {
                Mirrored::Text(text) => encode(&text),
                Mirrored::Number(number) => spelled(&number),
                Mirrored::Nothing | Mirrored::Ambiguous => return None,
            };
            Some(Header { name: Cow::Owned(mirror.header.clone()), value })
        };
        self.mirrors.iter().filter_map(header).collect()
    }

    pub(super) fn mirrors(&self) -> &[Mirror] {
        &self.mirrors
    }
}

impl Mirror {
    /// What the header says about these arguments, when every reader agrees on it.
    pub(super) fn in_arguments(&self, arguments: Option<&str>) -> Mirrored {
        let Some(mut value) = arguments else { return Mirrored::Nothing };
        for key in &self.path {
            match members_named(value, key).as_deref() {
                Some([only]) => value = only,
                Some([]) | None => return Mirrored::Nothing,
                Some(_) => return Mirrored::Ambiguous,
            }
        }
        mirrored(value)
    }

    /// What the header says when the last of equal keys counts, as it does for most readers.
    fn last_in(&self, arguments: &str) -> Option<Mirrored> {
        let value =
            self.path.iter().try_fold(arguments, |value, key| members_named(value, key)?.last().copied());
        value.map(mirrored)
    }
}

/// What a header says of a value.
fn mirrored(value: &str) -> Mirrored {
    match value.as_bytes().first() {
        Some(b'"') => string(value).map_or(Mirrored::Nothing, Mirrored::Text),
        Some(b't' | b'f') => Mirrored::Text(value.to_owned()),
        Some(b'-' | b'0'..=b'9') => serde_json::from_str(value).map_or(Mirrored::Nothing, Mirrored::Number),
        _ => Mirrored::Nothing,
    }
}

/// A number without an exponent, and without a fraction where it is an integer that every reader can hold.
fn spelled(number: &serde_json::Number) -> String {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= SAFE => {
            format!("{float:.0}")
        }
        _ => number.to_string(),
    }
}

/// Whether an annotation stands anywhere below.
fn holds_annotation(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().any(|(key, value)| key == ANNOTATION || holds_annotation(value))
        }
        Value::Array(items) => items.iter().any(holds_annotation),
        _ => false,
    }
}

/// RFC 9110 §5.6.2.
fn is_token(name: &str) -> bool {
    let is_in_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(is_in_token)
}

/// A list of tools.
#[derive(serde::Deserialize)]
struct Listed<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

/// What is read of a tool.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    input_schema: &'a RawValue,
}

/// The headers of tools, as lists of tools have told them, within bounds: what a server lists beyond them has no headers here.
#[derive(Debug, Default)]
pub struct SeenTools {
    tools: BTreeMap<String, ToolHeaders>,
    /// How many bytes their names and headers have.
    bytes: usize,
}

impl SeenTools {
    /// Takes note of a list of tools: the response to `tools/list`.
    pub fn learn_response(&mut self, response: &ServerFrame<'_>) -> Vec<(String, InvalidAnnotation)> {
        response.result().map_or_else(Vec::new, |result| self.learn(result))
    }

    /// Takes note of a list of tools: the `result` of `tools/list`, as JSON text. Returns tools whose annotations are
    /// invalid, with the reason.
    pub fn learn(&mut self, result: &str) -> Vec<(String, InvalidAnnotation)> {
        let mut invalid = Vec::new();
        if self.tools.is_empty() && !result.contains(ANNOTATION) {
            return invalid;
        }
        let Ok(listed) = serde_json::from_str::<Listed<'_>>(result) else { return invalid };
        for tool in listed.tools {
            let Ok(tool) = serde_json::from_str::<Tool<'_>>(tool.get()) else { continue };
            match ToolHeaders::of_schema(tool.input_schema.get()) {
                Ok(headers) => self.know(&tool.name, headers),
                Err(reason) => {
                    self.know(&tool.name, ToolHeaders::default());
                    let shown = tool.name.floor_char_boundary(LONGEST_NAME);
                    invalid.push((tool.name[..shown].to_owned(), reason));
                }
            }
        }
        invalid
    }

    /// Takes note of the headers of one tool, in place of what was known of it.
    fn know(&mut self, name: &str, headers: ToolHeaders) {
        if let Some(known) = self.tools.remove(name) {
            self.bytes -= name.len() + known.bytes();
        }
        let bytes = name.len() + headers.bytes();
        if !headers.is_empty() && self.tools.len() < MOST_TOOLS && self.bytes + bytes <= MOST_BYTES {
            self.bytes += bytes;
            self.tools.insert(name.to_owned(), headers);
        }
    }

    /// The headers of a tool, where a list has named any.
    pub fn get(&self, tool: &str) -> Option<&ToolHeaders> {
        self.tools.get(tool)
    }
}
