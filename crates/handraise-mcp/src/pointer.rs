//! JSON pointers (RFC 6901) walked over raw text: what they point at keeps its own bytes.

use std::fmt;
use std::ops::ControlFlow;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The most bytes of a pointer in a rule.
const MAX_BYTES: usize = 256;

/// A JSON pointer: `""` is the whole document, `/error/code` the member `code` of the member `error`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    tokens: Vec<String>,
}

/// Why a text is no pointer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// Neither empty nor beginning with `/`.
    #[error("\"{0}\" is no JSON pointer: write it as \"/member\" or \"/member/inner\"")]
    NoSlash(String),
    /// A `~` that is neither `~0` nor `~1`.
    #[error("\"{0}\" is no JSON pointer: `~` is written as `~0`, `/` inside a name as `~1`")]
    Tilde(String),
    /// Longer than 256 bytes.
    #[error("a JSON pointer of {0} bytes is too long: 256 are the most")]
    TooLong(usize),
}

impl Pointer {
    /// Reads a pointer as a rule spells it.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        if text.len() > MAX_BYTES {
            return Err(PointerError::TooLong(text.len()));
        }
        if text.is_empty() {
            return Ok(Self { tokens: Vec::new() });
        }
        let Some(rest) = text.strip_prefix('/') else { return Err(PointerError::NoSlash(text.to_owned())) };
        let tokens = rest.split('/').map(|token| unescape(token, text)).collect::<Result<_, _>>()?;
        Ok(Self { tokens })
    }

    /// A pointer through those members, one below the other.
    pub fn members(names: &[&str]) -> Self {
        Self { tokens: names.iter().map(|name| (*name).to_owned()).collect() }
    }

    /// What the pointer names in a document; nothing when a part of it is missing or the document is no JSON.
    ///
    /// Of duplicate members the last counts, as in `JSON.parse`.
    pub fn find<'a>(&self, document: &'a RawValue) -> Option<&'a RawValue> {
        self.tokens.iter().try_fold(document, |value, token| step(value, token))
    }
}

fn unescape(token: &str, pointer: &str) -> Result<String, PointerError> {
    let mut parts = token.split('~');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (character, rest) = match part.as_bytes().first() {
            Some(b'0') => ('~', &part[1..]),
            Some(b'1') => ('/', &part[1..]),
            _ => return Err(PointerError::Tilde(pointer.to_owned())),
        };
        plain.push(character);
        plain.push_str(rest);
    }
    Ok(plain)
}

fn step<'a>(value: &'a RawValue, token: &str) -> Option<&'a RawValue> {
    let mut reader = serde_json::Deserializer::from_str(value.get());
    match value.get().as_bytes().first()? {
        b'{' => Member(token).deserialize(&mut reader).ok()?,
        b'[' => {
            let is_index = token == "0" || !token.starts_with('0');
            let index = token.bytes().all(|byte| byte.is_ascii_digit()).then(|| token.parse().ok())??;
            is_index.then(|| Item(index).deserialize(&mut reader).ok())??
        }
        _ => None,
    }
}

/// The last member of that name.
struct Member<'t>(&'t str);

impl<'de> DeserializeSeed<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_wanted) = members.next_key_seed(Is(self.0))? {
            if is_wanted {
                found = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Whether a name, unescaped, is that one.
struct Is<'t>(&'t str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// The item of an array at that place.
struct Item(usize);

impl<'de> DeserializeSeed<'de> for Item {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Item {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        let mut index = 0;
        loop {
            if index == self.0 {
                let Some(item) = items.next_element()? else { break };
                found = Some(item);
            } else if items.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
            index += 1;
        }
        Ok(found)
    }
}

/// At most `limit` items of an array, each with its own bytes.
///
/// `None` when it is no array, no JSON, or longer than that.
pub(crate) fn items(array: &RawValue, limit: usize) -> Option<Vec<&RawValue>> {
    struct Bounded(usize);

    impl<'de> Visitor<'de> for Bounded {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(item) = items.next_element()? {
                if found.len() == self.0 {
                    return Err(A::Error::custom("too many items"));
                }
                found.push(item);
            }
            Ok(found)
        }
    }

    if !array.get().starts_with('[') {
        return None;
    }
    serde_json::Deserializer::from_str(array.get()).deserialize_seq(Bounded(limit)).ok()
}

/// The one member of an object with that name, or none.
///
/// # Errors
///
/// [`Unclear`] when the name stands there more than once, or when the object is none.
pub(crate) fn sole<'a>(object: &'a RawValue, name: &str) -> Result<Option<&'a RawValue>, Unclear> {
    struct Sole<'t>(&'t str);

    impl<'de> Visitor<'de> for Sole<'_> {
        type Value = Option<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some(is_wanted) = members.next_key_seed(Is(self.0))? {
                let value = members.next_value()?;
                if is_wanted && found.replace(value).is_some() {
                    return Err(A::Error::custom("a name twice"));
                }
            }
            Ok(found)
        }
    }

    serde_json::Deserializer::from_str(object.get()).deserialize_map(Sole(name)).map_err(|_| Unclear)
}

/// A name that stands in an object more than once, or something that is no object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unclear;

/// Hands out the items of an array in order, until `each` breaks. What follows then is not read.
///
/// `None` when it is no array, or no JSON as far as it was read.
pub(crate) fn each_item<'a>(
    array: &'a RawValue,
    each: impl FnMut(&'a RawValue) -> ControlFlow<()>,
) -> Option<()> {
    struct Each<'f, F> {
        each: F,
        has_broken: &'f mut bool,
    }

    impl<'de, F: FnMut(&'de RawValue) -> ControlFlow<()>> Visitor<'de> for Each<'_, F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
            while let Some(item) = items.next_element()? {
                if (self.each)(item).is_break() {
                    *self.has_broken = true;
                    return Err(A::Error::custom("enough"));
                }
            }
            Ok(())
        }
    }

    if !array.get().starts_with('[') {
        return None;
    }
    let mut has_broken = false;
    let visitor = Each { each, has_broken: &mut has_broken };
    let read = serde_json::Deserializer::from_str(array.get()).deserialize_seq(visitor);
    (read.is_ok() || has_broken).then_some(())
}

/// A JSON string's value; nothing for any other value.
pub(crate) fn string(value: &RawValue) -> Option<String> {
    if !value.get().starts_with('"') {
        return None;
    }
    serde_json::from_str(value.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pointer: &str, document: &str) -> Option<String> {
        let document: &RawValue = serde_json::from_str(document).unwrap();
        Pointer::parse(pointer).unwrap().find(document).map(|value| value.get().to_owned())
    }

    #[test]
    fn rfc6901_examples_are_found() {
        let document =
            r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        for (pointer, value) in [
            ("", document),
            ("/foo", r#"["bar","baz"]"#),
            ("/foo/0", r#""bar""#),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(find(pointer, document).as_deref(), Some(value), "{pointer}");
        }
    }

    #[test]
    fn what_is_missing_is_nothing() {
        let document = r#"{"a":{"b":[1]},"s":"text","n":null}"#;
        for pointer in ["/x", "/a/x", "/a/b/1", "/a/b/00", "/a/b/-", "/a/b/+0", "/a/b/", "/s/0", "/n/x"] {
            assert_eq!(find(pointer, document), None, "{pointer}");
        }
        assert_eq!(find("/n", document).as_deref(), Some("null"));
    }

    #[test]
    fn values_keep_their_own_bytes_and_the_last_of_duplicates_counts() {
        assert_eq!(find("/a", r#"{"a":1,"\u0061":1.0}"#).as_deref(), Some("1.0"));
        assert_eq!(find("/a/b", r#"{"a":{"b": { "x" : 1e0 } }}"#).as_deref(), Some(r#"{ "x" : 1e0 }"#));
    }

    #[test]
    fn what_is_no_pointer_is_named() {
        assert_eq!(Pointer::parse("code"), Err(PointerError::NoSlash("code".into())));
        assert_eq!(Pointer::parse("/a~"), Err(PointerError::Tilde("/a~".into())));
        assert_eq!(Pointer::parse("/a~2"), Err(PointerError::Tilde("/a~2".into())));
        assert_eq!(Pointer::parse(&format!("/{}", "a".repeat(256))), Err(PointerError::TooLong(257)));
    }

    #[test]
    fn a_list_is_bounded() {
        let list: &RawValue = serde_json::from_str("[1, 2,3]").unwrap();
        assert_eq!(items(list, 3).map(|items| items.len()), Some(3));
        assert_eq!(items(list, 2).map(|items| items.len()), None);
    }

    #[test]
    fn a_list_is_read_as_far_as_it_is_wanted() {
        let read = |list: &str, most: usize| {
            let list = RawValue::from_string(list.to_owned()).unwrap();
            let mut found = Vec::new();
            let read = each_item(&list, |item| {
                found.push(item.get().to_owned());
                if found.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            read.map(|()| found.join("|"))
        };
        assert_eq!(read("[1, {\"a\":2},3]", 9).as_deref(), Some("1|{\"a\":2}|3"));
        assert_eq!(read("[1, {\"a\":2},3]", 2).as_deref(), Some("1|{\"a\":2}"));
        assert_eq!(read("[]", 1).as_deref(), Some(""));
        assert_eq!(read("{}", 1), None);
    }
}
