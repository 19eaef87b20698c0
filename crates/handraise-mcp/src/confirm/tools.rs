//! What a server's tool lists say, page by page, and how guarded tools are listed instead.

use std::collections::BTreeMap;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::hash::ARGUMENT;
use crate::canonical::{Dialect, canonical};
use crate::frame::splice::{Splice, quoted};
use crate::frame::{Scanner, has_members, member_at};
use crate::pointer::{self, sole};

/// The most tools that are remembered of one connection. A list that is longer counts as none.
const MAX_TOOLS: usize = 16_384;

/// The most pages of one list.
const MAX_PAGES: usize = 256;

/// The longest name of a tool that is remembered, in bytes.
const MAX_NAME_BYTES: usize = 1024;

/// One tool, as its server lists it. Annotations are the server's claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// `readOnlyHint: true`.
    pub is_read_only: bool,
    /// Read-only, or `destructiveHint: false`.
    pub is_harmless: bool,
    /// Its own schema has an argument of the token's name.
    pub has_own_token: bool,
    digest: [u8; 32],
}

/// A complete list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolList {
    tools: BTreeMap<String, Listed>,
}

/// A list that is not complete yet.
#[derive(Debug, Default)]
pub struct Gathering {
    list: ToolList,
    /// The cursor of the page that comes next.
    cursor: Option<String>,
    pages: usize,
}

/// How far a list has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Gathered {
    /// The next page is asked for with this cursor.
    More(String),
    /// It is complete.
    All(ToolList),
}

/// A list that cannot be read, or is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unlistable;

impl ToolList {
    /// What is listed under a name.
    pub fn tool(&self, name: &str) -> Option<&Listed> {
        self.tools.get(name)
    }

    /// A digest of the tool's listed definition: the same for the same JSON value, and a word of its own where none is
    /// listed.
    pub fn digest(&self, name: &str) -> String {
        self.tool(name).map_or_else(
            || "unlisted".to_owned(),
            |tool| format!("sha256:{}", URL_SAFE_NO_PAD.encode(tool.digest)),
        )
    }

    /// Names that are listed as something that may do harm.
    pub fn harmful(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().filter(|(_, tool)| !tool.is_harmless).map(|(name, _)| &**name)
    }

    fn add(&mut self, definition: &RawValue) -> Result<(), Unlistable> {
        let name = sole(definition, "name").ok().flatten().and_then(pointer::string);
        let name = name.filter(|name| name.len() <= MAX_NAME_BYTES).ok_or(Unlistable)?;
        let one = Listed::read(definition);
        let both = match self.tools.get(&name) {
            None => one,
            // Twice under one name: the worst of both.
            Some(first) => Listed {
                is_read_only: one.is_read_only && first.is_read_only,
                is_harmless: one.is_harmless && first.is_harmless,
                has_own_token: one.has_own_token || first.has_own_token,
                digest: Sha256::new().chain_update(first.digest).chain_update(one.digest).finalize().into(),
            },
        };
        self.tools.insert(name, both);
        if self.tools.len() <= MAX_TOOLS { Ok(()) } else { Err(Unlistable) }
    }
}

impl Listed {
    /// Reads a definition. What stands there twice, or is no boolean, claims nothing.
    fn read(definition: &RawValue) -> Self {
        let annotations = sole(definition, "annotations").ok().flatten();
        let hint = |name| annotations.and_then(|all| sole(all, name).ok().flatten()).map(RawValue::get);
        let is_read_only = hint("readOnlyHint") == Some("true");
        let digest = canonical(definition.get().as_bytes(), None, Dialect::Plain)
            .map_or_else(|_| Sha256::digest(definition.get().as_bytes()).into(), |text| text.sha256());
        Self {
            is_read_only,
            is_harmless: is_read_only || hint("destructiveHint") == Some("false"),
            has_own_token: has_own_token(definition),
            digest,
        }
    }
}

fn has_own_token(definition: &RawValue) -> bool {
    let properties = sole(definition, "inputSchema")
        .and_then(|schema| schema.map_or(Ok(None), |schema| sole(schema, "properties")));
    match properties {
        Ok(None) => false,
        Ok(Some(properties)) => !matches!(sole(properties, ARGUMENT), Ok(None)),
        // A schema that says nothing clearly may say anything.
        Err(_) => true,
    }
}

impl Gathering {
    /// Whether a page that was asked for with this cursor is the one that comes next.
    pub fn awaits(&self, cursor: Option<&str>) -> bool {
        self.pages > 0 && self.cursor.as_deref() == cursor
    }

    /// Takes the next page: the `result` of `tools/list`.
    ///
    /// # Errors
    /// When it cannot be read, or when the list becomes too long.
    pub fn page(&mut self, result: &str) -> Result<Gathered, Unlistable> {
        self.pages += 1;
        let result: &RawValue = serde_json::from_str(result).map_err(|_| Unlistable)?;
        let tools = sole(result, "tools").ok().flatten().ok_or(Unlistable)?;
        for definition in pointer::items(tools, MAX_TOOLS).ok_or(Unlistable)? {
            self.list.add(definition)?;
        }
        match sole(result, "nextCursor").map_err(|_| Unlistable)? {
            Some(cursor) if cursor.get() != "null" => {
                let cursor = pointer::string(cursor).filter(|_| self.pages < MAX_PAGES).ok_or(Unlistable)?;
                self.cursor = Some(cursor.clone());
                Ok(Gathered::More(cursor))
            }
            _ => Ok(Gathered::All(std::mem::take(&mut self.list))),
        }
    }
}

/// The names of the tools on a page that may do harm, as far as they can be read.
pub fn harmful_on(result: &str) -> Vec<String> {
    let Ok(result) = serde_json::from_str::<&RawValue>(result) else { return Vec::new() };
    let tools = sole(result, "tools").ok().flatten().and_then(|tools| pointer::items(tools, MAX_TOOLS));
    tools
        .into_iter()
        .flatten()
        .filter(|definition| !Listed::read(definition).is_harmless)
        .filter_map(|definition| sole(definition, "name").ok().flatten().and_then(pointer::string))
        .filter(|name| name.len() <= MAX_NAME_BYTES)
        .collect()
}

/// How a tool is listed that is guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// As one that its caller confirms: with a form, or with a token, unless it has one of its own; or that the inbox may.
    Caller { form: bool, token: bool, inbox: bool },
    /// As one that only the inbox confirms.
    Inbox,
}

const SENTENCE_OF_INBOX: &str = "Runs only once somebody has confirmed it in the inbox.";
const SENTENCE_OF_FORM: &str = "Runs only once it was confirmed: the client asks its user.";
const SENTENCE_OF_BOTH: &str = "Runs only once it was confirmed: the client asks its user, or a first call returns \
     a preview and a confirmToken, and the same call with that confirmToken runs it.";
const SENTENCE_OF_TOKEN: &str = "Runs only once it was confirmed: a first call returns a preview and a confirmToken, and \
     the same call with that confirmToken runs it.";
const SENTENCE_OF_NOTHING: &str =
    "Does not run here: it has to be confirmed, and there is no way to do that.";
const ABOUT_TOKEN: &str = "Only with the confirmToken that the same call has returned before.";

/// How a page lists guarded tools: with the sentence, without an output schema, and with the token where tokens are
/// given. Everything else keeps its bytes; `None` when there is no guarded tool on it.
///
/// `result` is where the result stands in the frame's bytes; `offer` judges a name, and whether its server calls it
/// harmless here: nothing for a tool that is not guarded.
pub(crate) fn listed_as_guarded(
    frame: &[u8],
    result: Range<usize>,
    offer: impl Fn(&str, bool) -> Option<Offer>,
) -> Option<Vec<u8>> {
    let text = |range: Range<usize>| std::str::from_utf8(frame.get(range)?).ok();
    let tools = inner(member_at(text(result.clone())?, "tools")?, &result);
    let mut splice = Splice::default();
    let mut is_changed = false;
    for tool in items_at(text(tools.clone())?).into_iter().map(|item| inner(item, &tools)) {
        let Some(definition) = text(tool.clone()).and_then(|text| serde_json::from_str(text).ok()) else {
            continue;
        };
        let definition: &RawValue = definition;
        let Some(name) = sole(definition, "name").ok().flatten().and_then(pointer::string) else { continue };
        let listed = Listed::read(definition);
        let Some(offer) = offer(&name, listed.is_harmless) else { continue };
        is_changed = true;
        let sentence = match offer {
            Offer::Caller { form, token, .. } if token && !listed.has_own_token => {
                offer_token(&mut splice, definition.get(), &tool);
                if form { SENTENCE_OF_BOTH } else { SENTENCE_OF_TOKEN }
            }
            Offer::Caller { form: true, .. } => SENTENCE_OF_FORM,
            Offer::Caller { form: false, inbox: true, .. } | Offer::Inbox => SENTENCE_OF_INBOX,
            Offer::Caller { form: false, .. } => SENTENCE_OF_NOTHING,
        };
        describe(&mut splice, definition.get(), &tool, sentence);
        splice.remove_members(frame, tool, |name| name == "outputSchema");
    }
    is_changed.then(|| splice.apply(frame))
}

/// A range within another one, in the coordinates of that one's text.
fn inner(range: Range<usize>, outer: &Range<usize>) -> Range<usize> {
    outer.start + range.start..outer.start + range.end
}

/// Where the items of an array stand.
fn items_at(array: &str) -> Vec<Range<usize>> {
    let mut scanner = Scanner::new(array.as_bytes());
    let mut items = Vec::new();
    if scanner.take(b'[').is_err() {
        return items;
    }
    scanner.space();
    while let Ok(item) = scanner.value() {
        items.push(item);
        scanner.space();
        if !scanner.take_if(b',') {
            break;
        }
        scanner.space();
    }
    items
}

fn describe(splice: &mut Splice, definition: &str, tool: &Range<usize>, sentence: &str) {
    match member_at(definition, "description") {
        Some(at) if definition[at.clone()].starts_with('"') => {
            let space = if at.len() > 2 { " " } else { "" };
            let end = tool.start + at.end - 1;
            splice.replace(end..end, format!("{space}{sentence}"));
        }
        Some(at) => splice.replace(inner(at, tool), quoted(sentence)),
        None => add_member(splice, definition, tool, &format!("\"description\":{}", quoted(sentence))),
    }
}

fn offer_token(splice: &mut Splice, definition: &str, tool: &Range<usize>) {
    let argument = format!("\"{ARGUMENT}\":{{\"type\":\"string\",\"description\":{}}}", quoted(ABOUT_TOKEN));
    let Some(schema) = member_at(definition, "inputSchema") else { return };
    let schema_text = &definition[schema.clone()];
    if !schema_text.starts_with('{') {
        return;
    }
    let schema_at = inner(schema.clone(), tool);
    match member_at(schema_text, "properties") {
        None => add_member(splice, schema_text, &schema_at, &format!("\"properties\":{{{argument}}}")),
        Some(properties) if schema_text[properties.clone()].starts_with('{') => {
            let text = &schema_text[properties.clone()];
            add_member(splice, text, &inner(properties, &schema_at), &argument);
        }
        Some(_) => {}
    }
}

/// Adds a member at the end of an object.
fn add_member(splice: &mut Splice, object: &str, at: &Range<usize>, member: &str) {
    let comma = if has_members(object) { "," } else { "" };
    splice.replace(at.end - 1..at.end - 1, format!("{comma}{member}"));
}
