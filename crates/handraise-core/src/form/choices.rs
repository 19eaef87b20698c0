//! The choices of a question and the JSON values behind them.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use super::number;
use super::profile::MetaPath;
use super::property::{Listed, Type, at, words};
use crate::ask::Choice;

/// Choices, and what identifies them on the wire.
pub(super) struct Choices {
    pub(super) list: Vec<Choice>,
    /// Parallel to `list`; `None` when each const is the choice's own text.
    pub(super) consts: Option<Box<[Value]>>,
    /// Whether entries without a usable const, or repeated ones, were left out.
    pub(super) left_out: bool,
}

/// Below this many entries looking through all of them is quicker than hashing.
pub(super) const FEW: usize = 16;

/// Reads the choices in array order. Entries without a const that the type takes, and later duplicates, are left
/// out (form.md).
pub(super) fn read(listed: Listed<'_>, kind: Type, previews: &[MetaPath]) -> Choices {
    let mut found = Found { choices: Vec::with_capacity(listed.len()), ..Found::default() };
    match listed {
        Listed::Titled(entries) => {
            for entry in entries {
                let taken = entry.as_object().map(Entry::read).and_then(|entry| {
                    let value = entry.value?;
                    let shown = shown(value, kind)?;
                    let preview = entry.meta.and_then(|meta| {
                        previews.iter().find_map(|path| at(meta, path).and_then(words).map(str::to_owned))
                    });
                    found.add(value, shown, entry.title, entry.description.map(str::to_owned), preview)
                });
                found.left_out |= taken.is_none();
            }
        }
        Listed::Plain { values, names } => {
            for (at, value) in values.iter().enumerate() {
                let name = names.get(at).and_then(words);
                let taken = shown(value, kind).and_then(|shown| found.add(value, shown, name, None, None));
                found.left_out |= taken.is_none();
            }
        }
    }
    let Found { choices, consts, left_out, .. } = found;
    Choices { list: choices, consts: consts.map(Vec::into_boxed_slice), left_out }
}

/// One entry of `oneOf` or `anyOf`.
#[derive(Default)]
struct Entry<'a> {
    value: Option<&'a Value>,
    title: Option<&'a str>,
    description: Option<&'a str>,
    meta: Option<&'a Map<String, Value>>,
}

impl<'a> Entry<'a> {
    fn read(keywords: &'a Map<String, Value>) -> Self {
        let mut entry = Self::default();
        for (keyword, value) in keywords {
            match keyword.as_str() {
                "const" => entry.value = Some(value),
                "title" => entry.title = words(value),
                "description" => entry.description = words(value),
                "_meta" => entry.meta = value.as_object(),
                _ => {}
            }
        }
        entry
    }
}

#[derive(Default)]
struct Found<'a> {
    choices: Vec<Choice>,
    consts: Option<Vec<Value>>,
    seen: HashSet<Cow<'a, str>>,
    left_out: bool,
}

impl<'a> Found<'a> {
    /// Adds a choice; `None` when its value is there already.
    fn add(
        &mut self,
        value: &Value,
        shown: Cow<'a, str>,
        label: Option<&str>,
        description: Option<String>,
        preview: Option<String>,
    ) -> Option<()> {
        if self.has(&shown) {
            return None;
        }
        if self.consts.is_none() && !value.is_string() {
            self.consts =
                Some(self.choices.iter().map(|choice| Value::from(choice.value.as_str())).collect());
        }
        if let Some(consts) = &mut self.consts {
            consts.push(value.clone());
        }
        let value = shown.clone().into_owned();
        let label = label.map_or_else(|| value.clone(), str::to_owned);
        self.choices.push(Choice { value, label, description, preview });
        if self.choices.len() > FEW {
            self.seen.insert(shown);
        }
        Some(())
    }

    fn has(&self, shown: &str) -> bool {
        let few = self.choices.len().min(FEW);
        self.choices[..few].iter().any(|choice| choice.value == shown) || self.seen.contains(shown)
    }
}

/// How a const is shown and named in an answer, if the type takes it.
fn shown(value: &Value, kind: Type) -> Option<Cow<'_, str>> {
    let numeric = matches!(kind, Type::Number | Type::Integer);
    match value {
        Value::String(text) if !numeric => Some(Cow::Borrowed(text)),
        Value::Bool(value) if !numeric => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
        Value::Number(value) if kind != Type::Integer || number::to_integer(value).is_some() => {
            Some(Cow::Owned(value.to_string()))
        }
        _ => None,
    }
}

/// The answer that a default names, in the way answers are given: text of a choice's value, or a list of them.
pub(super) fn default_of(default: &Value, many: bool, choices: &Choices) -> Option<Value> {
    let position = |value: &Value| {
        if let Some(consts) = &choices.consts {
            return consts.iter().position(|constant| constant == value);
        }
        let value = value.as_str()?;
        choices.list.iter().position(|choice| choice.value == value)
    };
    let named = |at: usize| choices.list.get(at).map(|choice| Value::from(choice.value.as_str()));
    if !many {
        return named(position(default)?);
    }
    // One pass over the choices, so that a long default costs no more than its length.
    let wanted: HashSet<String> = default.as_array()?.iter().map(Value::to_string).collect();
    let picked: Vec<Value> = choices
        .list
        .iter()
        .enumerate()
        .filter(|(at, choice)| {
            let constant = choices.consts.as_ref().and_then(|consts| consts.get(*at));
            let text =
                constant.map_or_else(|| Value::from(choice.value.as_str()).to_string(), Value::to_string);
            wanted.contains(&text)
        })
        .filter_map(|(at, _)| named(at))
        .collect();
    (!picked.is_empty()).then_some(Value::Array(picked))
}
