//! What a form may weigh: untrusted input is measured before it is looked at (form.md, "Size limits").

use std::fmt::{self, Write};

use serde_json::{Map, Number, Value};

use super::refusal::Refusal;

/// The most bytes of a schema, as compact JSON text.
pub const MAX_SCHEMA_BYTES: usize = 256 * 1024;
/// The most properties of a schema.
pub const MAX_PROPERTIES: usize = 200;
/// The most choices of a question.
pub const MAX_CHOICES: usize = 1_000;
/// The deepest nesting of a schema, the schema itself counted.
pub const MAX_DEPTH: usize = 16;
/// The most bytes of a message.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// The most bytes of content, as compact JSON text.
pub const MAX_CONTENT_BYTES: usize = 1024 * 1024;
/// The most bytes of a pattern's source (S39).
pub const MAX_PATTERN_BYTES: usize = 1024;
/// The most patterns of one form that are compiled; what compiling costs is bounded by this.
pub const MAX_PATTERNS: usize = 32;

/// Refuses a schema that is too large or too deep.
pub(super) fn check_schema(schema: &Map<String, Value>) -> Result<(), Refusal> {
    let mut measure = Measure { left: MAX_SCHEMA_BYTES };
    measure.object(schema, MAX_DEPTH - 1).map_err(|beyond| match beyond {
        Beyond::Bytes => Refusal::SchemaTooLarge { limit: MAX_SCHEMA_BYTES },
        Beyond::Depth => Refusal::TooDeep { limit: MAX_DEPTH },
    })
}

/// Whether content fits on the wire.
pub(super) fn content_fits(content: &Map<String, Value>) -> bool {
    Measure { left: MAX_CONTENT_BYTES }.object(content, MAX_DEPTH).is_ok()
}

enum Beyond {
    Bytes,
    Depth,
}

/// Counts the bytes of compact JSON text down to nothing, without writing it.
struct Measure {
    left: usize,
}

impl Measure {
    fn take(&mut self, bytes: usize) -> Result<(), Beyond> {
        self.left = self.left.checked_sub(bytes).ok_or(Beyond::Bytes)?;
        Ok(())
    }

    /// `depth` is how many levels may still be below this one.
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Beyond> {
        match value {
            Value::Null | Value::Bool(true) => self.take(4),
            Value::Bool(false) => self.take(5),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                let depth = depth.checked_sub(1).ok_or(Beyond::Depth)?;
                self.take(2 + items.len().saturating_sub(1))?;
                items.iter().try_for_each(|item| self.value(item, depth))
            }
            Value::Object(map) => {
                let depth = depth.checked_sub(1).ok_or(Beyond::Depth)?;
                self.object(map, depth)
            }
        }
    }

    fn object(&mut self, map: &Map<String, Value>, depth: usize) -> Result<(), Beyond> {
        self.take(2 + map.len().saturating_sub(1))?;
        map.iter().try_for_each(|(key, value)| {
            self.string(key)?;
            self.take(1)?;
            self.value(value, depth)
        })
    }

    fn string(&mut self, text: &str) -> Result<(), Beyond> {
        self.take(2 + text.len())?;
        // Most text has nothing to escape; counting what has is a scan that vectorises.
        let escaped = text.bytes().filter(|byte| matches!(byte, 0..=0x1f | b'"' | b'\\')).count();
        if escaped > 0 {
            self.take(text.bytes().map(escape_bytes).sum())?;
        }
        Ok(())
    }

    fn number(&mut self, number: &Number) -> Result<(), Beyond> {
        let mut length = Length(0);
        // A count never fails to be written to.
        let _ = write!(length, "{number}");
        self.take(length.0)
    }
}

/// What escaping a byte adds.
const fn escape_bytes(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0x00..=0x1f => 5,
        _ => 0,
    }
}

struct Length(usize);

impl Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::form::testing::any_json;

    #[test]
    fn nesting_is_counted_from_the_schema_itself() {
        let nested = |levels: usize| {
            let mut value = json!({});
            for _ in 1..levels {
                value = json!({ "a": value });
            }
            value
        };
        let check = |value: &Value| check_schema(value.as_object().unwrap());
        assert_eq!(check(&nested(16)), Ok(()));
        assert_eq!(check(&nested(17)), Err(Refusal::TooDeep { limit: 16 }));
        assert_eq!(
            check(&json!({"a": [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]})),
            Err(Refusal::TooDeep { limit: 16 })
        );
    }

    proptest! {
        #[test]
        fn bytes_are_those_of_the_compact_text(value in any_json()) {
            let mut measure = Measure { left: usize::MAX };
            prop_assert!(measure.value(&value, usize::MAX).is_ok());
            prop_assert_eq!(usize::MAX - measure.left, value.to_string().len());
        }
    }
}
