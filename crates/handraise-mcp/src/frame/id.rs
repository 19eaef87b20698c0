//! Request ids: as they are spelled, and as they are compared.

use std::borrow::Cow;

use crate::frame::few::Few;
use crate::frame::scan::{NotJson, Scanner};

/// The id of a JSON-RPC request as it stands in a frame: a string or a number. Every other id is treated as none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id<'a> {
    raw: &'a str,
}

impl<'a> Id<'a> {
    /// Reads an id at the scanner; `None` for a value that is no id.
    pub(crate) fn scan(scanner: &mut Scanner<'a>) -> Result<Option<Self>, NotJson> {
        let first = scanner.peek();
        let span = scanner.value()?;
        let raw = std::str::from_utf8(scanner.since(span.start)).map_err(|_| NotJson)?;
        Ok(matches!(first, Some(b'"' | b'-' | b'0'..=b'9')).then_some(Self { raw }))
    }

    /// Reads an id from a text that holds nothing else.
    pub fn parse(raw: &'a str) -> Option<Self> {
        let mut scanner = Scanner::new(raw.as_bytes());
        let id = Self::scan(&mut scanner).ok()??;
        (scanner.at() == raw.len()).then_some(id)
    }

    /// The id as JSON text, spelled as the peer spelled it.
    pub fn raw(self) -> &'a str {
        self.raw
    }

    /// What the id is compared by: `1` and `1.0` are one id, `1` and `"1"` are two.
    pub(crate) fn key(self) -> Key<'a> {
        if self.raw.starts_with('"') {
            let open = &self.raw[..self.raw.len() - 1];
            if !self.raw.contains('\\') {
                return Key::Text(Cow::Borrowed(open));
            }
            let text = Scanner::new(self.raw.as_bytes()).string().map(|quoted| quoted.text().into_owned());
            return Key::Text(text.map_or(Cow::Borrowed(open), |text| Cow::Owned(format!("\"{text}"))));
        }
        integer(self.raw).map_or(Key::Text(Cow::Borrowed(self.raw)), Key::Integer)
    }

    /// Whether both are one id: `1` and `1.0` are, `1` and `"1"` are not.
    pub fn is(self, other: Id<'_>) -> bool {
        self.key() == other.key()
    }

    /// The text of a string id, and `None` of a number.
    pub fn text(self) -> Option<Cow<'a, str>> {
        if !self.raw.starts_with('"') {
            return None;
        }
        match self.key() {
            Key::Text(Cow::Borrowed(text)) => Some(Cow::Borrowed(&text[1..])),
            Key::Text(Cow::Owned(text)) => Some(Cow::Owned(text[1..].to_owned())),
            Key::Integer(_) => None,
        }
    }

    /// The integer that a number is, however it is spelled, and `None` of a string: `1.0` is 1.
    pub fn integer(self) -> Option<i64> {
        match self.key() {
            Key::Integer(number) => Some(number),
            Key::Text(_) => None,
        }
    }

    /// A copy that outlives the frame.
    pub fn to_owned(self) -> RequestId {
        RequestId { raw: self.raw.into() }
    }
}

/// A request id that outlives its frame.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    raw: Box<str>,
}

impl RequestId {
    /// The id in a frame.
    pub fn borrow(&self) -> Id<'_> {
        Id { raw: &self.raw }
    }

    /// The id as JSON text.
    pub fn raw(&self) -> &str {
        &self.raw
    }
}

/// The integer that a number means, if it is one and fits; the common spelling first.
fn integer(raw: &str) -> Option<i64> {
    if let Ok(number) = raw.parse() {
        return Some(number);
    }
    // 1.0, 10e-1, 1E2: peers that read a number write it their own way.
    let (mantissa, exponent) = match raw.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (raw, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let zeros = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let digits = format!("{whole}{fraction}").parse::<i64>().ok()?;
    if zeros >= 0 {
        return digits.checked_mul(10_i64.checked_pow(zeros.unsigned_abs())?);
    }
    let divisor = 10_i64.checked_pow(zeros.unsigned_abs())?;
    (digits % divisor == 0).then_some(digits / divisor)
}

/// What ids are compared by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key<'a> {
    Integer(i64),
    /// A string with its opening quote, or the text of a number that is no 64-bit integer.
    Text(Cow<'a, str>),
}

/// A map from ids that copies no id to look one up.
#[derive(Debug)]
pub struct ById<T> {
    integers: Few<i64, T>,
    texts: Few<Box<str>, T>,
}

impl<T> Default for ById<T> {
    fn default() -> Self {
        Self { integers: Few::default(), texts: Few::default() }
    }
}

impl<T> ById<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.integers.len() + self.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What an id leads to.
    pub fn get(&self, id: Id<'_>) -> Option<&T> {
        match id.key() {
            Key::Integer(number) => self.integers.get(&number),
            Key::Text(text) => self.texts.get(&*text),
        }
    }

    /// What an id leads to, to be changed.
    pub fn get_mut(&mut self, id: Id<'_>) -> Option<&mut T> {
        match id.key() {
            Key::Integer(number) => self.integers.get_mut(&number),
            Key::Text(text) => self.texts.get_mut(&*text),
        }
    }

    /// Puts a value under an id; returns what stood there.
    pub fn insert(&mut self, id: Id<'_>, value: T) -> Option<T> {
        match id.key() {
            Key::Integer(number) => self.integers.insert(number, value),
            Key::Text(text) => self.texts.insert(text.into(), value),
        }
    }

    /// Takes out what an id leads to.
    pub fn remove(&mut self, id: Id<'_>) -> Option<T> {
        match id.key() {
            Key::Integer(number) => self.integers.remove(&number),
            Key::Text(text) => self.texts.remove(&*text),
        }
    }

    /// Empties the map.
    pub fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        let Self { integers, texts } = self;
        integers.take().chain(texts.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(raw: &str) -> Key<'_> {
        Id::parse(raw).unwrap().key()
    }

    #[test]
    fn one_number_is_one_id_however_it_is_spelled() {
        for raw in ["1", "1.0", "1e0", "10e-1", "0.1E1", "0.01e+2", "100e-2"] {
            assert_eq!(key(raw), Key::Integer(1), "{raw}");
        }
        assert_eq!(key("-0"), Key::Integer(0));
        assert_eq!(key("9007199254740993"), Key::Integer(9_007_199_254_740_993));
        for raw in
            ["1.5", "1e-1", "1e400", "-1e-400", "9223372036854775808", "123456789012345678901234567890"]
        {
            assert_eq!(key(raw), Key::Text(Cow::Borrowed(raw)), "{raw}");
        }
    }

    #[test]
    fn a_string_is_never_a_number() {
        assert_ne!(key("\"1\""), key("1"));
        assert_ne!(key("\"1.5\""), key("1.5"));
        assert_eq!(key("\"a\\/b\""), key("\"a/b\""));
        assert_eq!(key("\"\\u0061\""), key("\"a\""));
        assert_eq!(Id::parse("\"a\\/b\"").unwrap().text().as_deref(), Some("a/b"));
    }

    #[test]
    fn what_is_no_id_is_none() {
        for raw in ["null", "true", "[1]", "{}", "", "1 ", " 1", "1,2"] {
            assert_eq!(Id::parse(raw), None, "{raw}");
        }
    }

    #[test]
    fn a_map_keeps_what_it_is_given() {
        let mut map = ById::default();
        for (raw, value) in [("1", 'a'), ("\"1\"", 'b'), ("1.5", 'c'), ("\"1.5\"", 'd')] {
            assert_eq!(map.insert(Id::parse(raw).unwrap(), value), None);
        }
        assert_eq!(map.len(), 4);
        assert_eq!(map.get(Id::parse("1.0").unwrap()), Some(&'a'));
        assert_eq!(map.remove(Id::parse("\"\\u0031\"").unwrap()), Some('b'));
        assert_eq!(map.remove(Id::parse("\"1\"").unwrap()), None);
        assert_eq!(map.take().collect::<Vec<_>>(), ['a', 'd', 'c']);
        assert!(map.is_empty());
    }
}
