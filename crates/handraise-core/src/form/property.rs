//! One property of a schema, read once, and the mapping rule that takes it.

use serde_json::{Map, Number, Value};

use super::profile::{CompanionMarker, MetaPath};
use crate::ask::Constraints;

/// The keywords of a property that mean something here. Wrongly typed ones count as absent.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Property<'a> {
    pub(super) key: &'a str,
    pub(super) kind: Option<Type>,
    pub(super) title: Option<&'a str>,
    pub(super) description: Option<&'a str>,
    pub(super) format: Option<&'a str>,
    pub(super) pattern: Option<&'a str>,
    pub(super) default: Option<&'a Value>,
    pub(super) meta: Option<&'a Map<String, Value>>,
    pub(super) is_secret: bool,
    one_of: Option<&'a [Value]>,
    enumeration: Option<&'a [Value]>,
    enum_names: Option<&'a [Value]>,
    items: Option<&'a Map<String, Value>>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    minimum: Option<&'a Number>,
    maximum: Option<&'a Number>,
    min_items: Option<u64>,
    max_items: Option<u64>,
}

/// A JSON Schema type that a question can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    String,
    Number,
    Integer,
    Boolean,
    Array,
}

/// What the mapping rules make of a property (form.md, "Mapping"; the rule's number in brackets).
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape<'a> {
    /// (1, 2, 4, 5, 7) A question with choices; of numbers only when `kind` is numeric.
    Choices { many: bool, listed: Listed<'a>, kind: Type },
    /// (6) Yes or no.
    Boolean,
    /// (7) A number without choices.
    Number { integer: bool },
    /// (8) Free text, or a companion (3).
    Text,
    /// (9) Nothing that can be asked.
    Ignored,
}

/// Where the choices of a property stand.
#[derive(Debug, Clone, Copy)]
pub(super) enum Listed<'a> {
    /// Objects with a `const`.
    Titled(&'a [Value]),
    /// Values, and maybe names for them.
    Plain { values: &'a [Value], names: &'a [Value] },
}

impl Listed<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Titled(entries) => entries.len(),
            Self::Plain { values, .. } => values.len(),
        }
    }
}

impl<'a> Property<'a> {
    /// Reads the keywords in one pass over the property.
    pub(super) fn read(key: &'a str, value: &'a Value) -> Self {
        let mut property = Self { key, ..Self::default() };
        let Some(keywords) = value.as_object() else { return property };
        for (keyword, value) in keywords {
            match keyword.as_str() {
                "type" => property.kind = Type::read(value),
                "title" => property.title = words(value),
                "description" => property.description = words(value),
                "format" => property.format = words(value),
                "pattern" => property.pattern = value.as_str(),
                "default" => property.default = Some(value),
                "_meta" => property.meta = value.as_object(),
                "isSecret" | "writeOnly" => property.is_secret |= value == &Value::Bool(true),
                "oneOf" => property.one_of = list(value),
                "enum" => property.enumeration = list(value),
                "enumNames" => property.enum_names = list(value),
                "items" => property.items = value.as_object(),
                "minLength" => property.min_length = count(value),
                "maxLength" => property.max_length = count(value),
                "minimum" => property.minimum = value.as_number(),
                "maximum" => property.maximum = value.as_number(),
                "minItems" => property.min_items = count(value),
                "maxItems" => property.max_items = count(value),
                _ => {}
            }
        }
        property
    }

    /// The first mapping rule that takes the property; companions (rule 3) are told apart by the caller.
    pub(super) fn shape(&self) -> Shape<'a> {
        let Some(kind) = self.kind else { return Shape::Ignored };
        match kind {
            Type::Array => self
                .items
                .and_then(listed_items)
                .map_or(Shape::Ignored, |listed| Shape::Choices { many: true, listed, kind: Type::Array }),
            Type::Boolean => Shape::Boolean,
            Type::String | Type::Number | Type::Integer => {
                let titled = self.one_of.map(Listed::Titled);
                let plain = self
                    .enumeration
                    .map(|values| Listed::Plain { values, names: self.enum_names.unwrap_or_default() });
                match titled.or(plain) {
                    Some(listed) => Shape::Choices { many: false, listed, kind },
                    None if kind == Type::String => Shape::Text,
                    None => Shape::Number { integer: kind == Type::Integer },
                }
            }
        }
    }

    /// Whether rule 1 or 2 takes the property, which come before companions.
    pub(super) fn is_never_companion(&self) -> bool {
        self.kind != Some(Type::String) || self.one_of.is_some()
    }

    /// Which question the property says it is the companion of, by the first marker that matches.
    ///
    /// `is_choice_question` answers whether a key of the same schema has choices.
    pub(super) fn companion_of(
        &self,
        markers: &[CompanionMarker],
        required: bool,
        is_choice_question: impl Fn(&str) -> bool,
    ) -> Option<&'a str> {
        markers.iter().find_map(|marker| match *marker {
            CompanionMarker::Meta { question, when } => {
                let meta = self.meta?;
                let holds =
                    |(path, value): &(MetaPath, &str)| at(meta, path).and_then(Value::as_str) == Some(*value);
                at(meta, question)?.as_str().filter(|_| when.iter().all(holds))
            }
            CompanionMarker::Suffix(suffix) => {
                let base = self.key.strip_suffix(suffix)?;
                (!required && self.is_unconstrained() && is_choice_question(base)).then_some(base)
            }
        })
    }

    fn is_unconstrained(&self) -> bool {
        self.enumeration.is_none()
            && self.format.is_none()
            && self.pattern.is_none()
            && self.default.is_none()
            && self.min_length.is_none()
            && self.max_length.is_none()
    }

    /// What the schema demands of a text at this property, the pattern left out.
    pub(super) fn text_constraints(&self) -> Constraints {
        Constraints {
            min_length: self.min_length,
            max_length: self.max_length,
            format: self.format.map(str::to_owned),
            ..Constraints::default()
        }
    }

    /// What the schema demands of a number at this property.
    pub(super) fn number_constraints(&self) -> Constraints {
        Constraints {
            minimum: self.minimum.cloned(),
            maximum: self.maximum.cloned(),
            ..Constraints::default()
        }
    }

    /// What the schema demands of several selections at this property.
    pub(super) fn item_constraints(&self) -> Constraints {
        Constraints { min_items: self.min_items, max_items: self.max_items, ..Constraints::default() }
    }
}

impl Type {
    /// A type, or a list of one type and `"null"`, in either order.
    fn read(value: &Value) -> Option<Self> {
        let name = match value {
            Value::String(name) => name.as_str(),
            Value::Array(names) => {
                let mut others = names.iter().filter(|name| *name != "null");
                let name = others.next()?.as_str()?;
                others.next().is_none().then_some(name)?
            }
            _ => return None,
        };
        match name {
            "string" => Some(Self::String),
            "number" => Some(Self::Number),
            "integer" => Some(Self::Integer),
            "boolean" => Some(Self::Boolean),
            "array" => Some(Self::Array),
            _ => None,
        }
    }
}

/// The choices of a multi-select: `anyOf`, `oneOf` or `enum` of its items.
fn listed_items(items: &Map<String, Value>) -> Option<Listed<'_>> {
    let titled = items.get("anyOf").and_then(list).or_else(|| items.get("oneOf").and_then(list));
    titled.map(Listed::Titled).or_else(|| {
        let values = items.get("enum").and_then(list)?;
        Some(Listed::Plain { values, names: items.get("enumNames").and_then(list).unwrap_or_default() })
    })
}

/// The value that a path leads to.
pub(super) fn at<'a>(meta: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(meta.get(*first)?, |value, key| value.get(*key))
}

/// A text that says something.
pub(super) fn words(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.trim().is_empty())
}

fn list(value: &Value) -> Option<&[Value]> {
    value.as_array().map(Vec::as_slice)
}

/// A count; `3.0` is one too, as JSON Schema has it.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be a small count"
        )]
        (number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number)).then_some(number as u64)
    })
}
