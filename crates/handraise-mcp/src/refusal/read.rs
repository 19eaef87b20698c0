//! Reads a result against a rule.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::value::RawValue;

use super::{Beyond, Candidate, CandidatesTool, Rule};
use crate::pointer::{self, Pointer};
use crate::visible;

/// The largest result that is asked about, in bytes. A larger refusal passes through.
pub const MAX_REFUSAL_BYTES: usize = 256 * 1024;
/// The largest result that is known as a refusal, in bytes. What is larger is not read.
pub const MAX_KNOWN_BYTES: usize = 1024 * 1024;
/// The most candidates that are offered. A refusal with more passes through: a part of them would be another question.
pub const MAX_CANDIDATES: usize = 1_000;
/// The longest value of a candidate, in bytes. A refusal with a longer one passes through: without it, the others would
/// look like all there is.
pub const MAX_VALUE_BYTES: usize = 1_024;
/// The longest title, in bytes; the value stands instead of a longer one.
const MAX_TITLE_BYTES: usize = 2_048;

/// What a result says, as documents in the order in which they are asked: the JSON in the text of its first content
/// block, then `structuredContent`, then `_meta`.
pub(super) struct Documents {
    documents: Vec<Box<RawValue>>,
}

impl Documents {
    /// `None` when the result is no JSON object, or no tool's own word: a question or a task of the server.
    pub(super) fn of(result: &str) -> Option<Self> {
        let whole: &RawValue = serde_json::from_str(result).ok()?;
        let at = |member: &str| Pointer::members(&[member]).find(whole);
        if !whole.get().starts_with('{') {
            return None;
        }
        let is_complete =
            at("resultType").is_none_or(|kind| pointer::string(kind).as_deref() == Some("complete"));
        if !is_complete {
            return None;
        }
        let documents =
            [text(whole), at("structuredContent").map(ToOwned::to_owned), at("_meta").map(ToOwned::to_owned)];
        Some(Self { documents: documents.into_iter().flatten().collect() })
    }

    /// What the refusal offers, when this is the rule's refusal and it offers a choice.
    ///
    /// Of a result that is too large to be asked about, only that there is one is found out.
    ///
    /// The first document that has a code decides whether it is. Code and candidates stand in one document: a list from
    /// elsewhere is not known to belong to the code.
    pub(super) fn candidates(&self, rule: &Rule, is_large: bool) -> Option<Result<Vec<Candidate>, Beyond>> {
        for document in &self.documents {
            let Some(code) = rule.code_at.iter().find_map(|at| pointer::string(at.find(document)?)) else {
                continue;
            };
            if code != rule.code() {
                return None;
            }
            if let Some(list) = list_in(document, &rule.candidates_at) {
                return if is_large { known(list, rule) } else { choice(list, rule) };
            }
        }
        None
    }
}

impl Rule {
    /// Reads the result of the rule's [`CandidatesTool`]: what can be chosen now, one candidate or none included.
    ///
    /// `None` when it holds no such list, or one beyond the limits.
    pub fn candidates_now(&self, result: &str) -> Option<Vec<Candidate>> {
        let CandidatesTool { candidates_at, .. } = self.candidates_tool()?;
        if result.len() > MAX_REFUSAL_BYTES {
            return None;
        }
        let documents = Documents::of(result)?.documents;
        let list = documents.iter().find_map(|document| list_in(document, candidates_at))?;
        distinct(list, self)?.ok()
    }
}

/// The JSON in the text of the first content block.
fn text(result: &RawValue) -> Option<Box<RawValue>> {
    let blocks = Pointer::members(&["content"]).find(result)?;
    if !blocks.get().starts_with('[') {
        return None;
    }
    let block = Pointer::members(&["0"]).find(blocks)?;
    let kind = pointer::string(Pointer::members(&["type"]).find(block)?)?;
    if kind != "text" {
        return None;
    }
    let text = pointer::string(Pointer::members(&["text"]).find(block)?)?;
    serde_json::from_str(&text).ok()
}

/// The first array that one of the paths leads to.
fn list_in<'a>(document: &'a RawValue, paths: &[Pointer]) -> Option<&'a RawValue> {
    paths.iter().filter_map(|at| at.find(document)).find(|value| value.get().starts_with('['))
}

/// At least two candidates, or no choice.
fn choice(list: &RawValue, rule: &Rule) -> Option<Result<Vec<Candidate>, Beyond>> {
    match distinct(list, rule)? {
        Ok(candidates) if candidates.len() < 2 => None,
        offered => Some(offered),
    }
}

/// Whether there are two candidates or more.
fn known(list: &RawValue, rule: &Rule) -> Option<Result<Vec<Candidate>, Beyond>> {
    let mut first = None;
    let mut has_second = false;
    pointer::each_item(list, |item| {
        let Some(value) = value(item, rule) else { return ControlFlow::Continue(()) };
        has_second = first.get_or_insert_with(|| value.clone()) != &value;
        if has_second { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    has_second.then_some(Err(Beyond::ResultTooLarge))
}

/// The candidates with distinct values; entries without a usable value are skipped. Whether all of them are within the
/// bounds counts only where there are two or more.
fn distinct(list: &RawValue, rule: &Rule) -> Option<Result<Vec<Candidate>, Beyond>> {
    let mut candidates = Vec::new();
    let mut seen = BTreeSet::new();
    let mut beyond = None;
    pointer::each_item(list, |item| {
        if let Some(value) = value(item, rule)
            && seen.insert(value.clone())
        {
            if value.len() > MAX_VALUE_BYTES {
                beyond.get_or_insert(Beyond::CandidateTooLong);
            } else if candidates.len() == MAX_CANDIDATES {
                beyond.get_or_insert(Beyond::TooManyCandidates);
            } else {
                candidates.push(Candidate {
                    title: title(item, &value, rule),
                    value,
                    whole: item.to_owned(),
                });
            }
        }
        ControlFlow::Continue(())
    })?;
    if let Some(beyond) = beyond.filter(|_| seen.len() >= 2) {
        return Some(Err(beyond));
    }
    tell_apart(&mut candidates);
    Some(Ok(candidates))
}

/// What goes into the argument.
fn value(item: &RawValue, rule: &Rule) -> Option<String> {
    // An empty string is no choice: tools take it for an argument that was left out.
    rule.value.find(item).and_then(pointer::string).filter(|value| !value.is_empty())
}

/// Adds the value to titles that several candidates share.
fn tell_apart(candidates: &mut [Candidate]) {
    let mut shared = BTreeMap::<String, usize>::new();
    for candidate in &*candidates {
        *shared.entry(candidate.title.clone()).or_default() += 1;
    }
    for candidate in candidates {
        if shared.get(&candidate.title).is_some_and(|count| *count > 1) {
            candidate.title = format!("{} [{}]", candidate.title, visible::text(&candidate.value));
        }
    }
}

/// What a human reads for a candidate: the rule's title, or the value where a member is missing. Controls and what
/// reorders text are made visible (S26).
fn title(item: &RawValue, value: &str, rule: &Rule) -> String {
    let filled = rule.title.fill(|member| plain(Pointer::members(&[member]).find(item)?));
    let title = filled.filter(|title| !title.is_empty() && title.len() <= MAX_TITLE_BYTES);
    visible::text(&title.unwrap_or_else(|| value.to_owned()))
}

/// A string, a number or a Boolean as text; a `null`, a list or an object counts as missing.
fn plain(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => pointer::string(value),
        b'{' | b'[' | b'n' => None,
        _ => Some(value.get().to_owned()),
    }
}
