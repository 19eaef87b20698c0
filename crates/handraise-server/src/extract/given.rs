//! Reads what a call was given, a JSON value or the pairs of a query, into what it takes. Whatever does not fit becomes a
//! [`Misfit`], in words of the API instead of the reading library's.

use std::{borrow::Cow, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, IntoDeserializer as _, MapAccess, SeqAccess, Visitor},
    forward_to_deserialize_any,
};
use serde_json::Value;

use super::misfit::{Misfit, listed, quoted};

/// Something given.
#[derive(Debug, Clone, Copy)]
pub(super) enum Given<'a> {
    /// No body.
    Nothing,
    /// A value of a body.
    Json(&'a Value),
    /// A query.
    Query(&'a [(Cow<'a, str>, Cow<'a, str>)]),
    /// The value of a query's parameter.
    Parameter(&'a str),
}

impl Given<'_> {
    /// What it is, for people. Of a body nothing is repeated that may be an answer or a secret.
    fn kind(self) -> Cow<'static, str> {
        match self {
            Self::Nothing => "empty".into(),
            Self::Json(Value::Null) => "null".into(),
            Self::Json(Value::Bool(_)) => "a boolean".into(),
            Self::Json(Value::Number(_)) => "a number".into(),
            Self::Json(Value::String(_)) => "a text".into(),
            Self::Json(Value::Array(_)) => "a list".into(),
            Self::Json(Value::Object(_)) => "an object".into(),
            Self::Query(_) => "a query".into(),
            Self::Parameter(text) => quoted(text).into(),
        }
    }

    /// Its text, if it is one.
    fn text(&self) -> Option<&str> {
        match self {
            Self::Json(Value::String(text)) => Some(text),
            Self::Parameter(text) => Some(text),
            Self::Nothing | Self::Json(_) | Self::Query(_) => None,
        }
    }
}

impl<'a> Given<'a> {
    /// Reads it into what is taken.
    pub(super) fn read<T: Deserialize<'a>>(self) -> Result<T, Misfit> {
        self.read_seed(PhantomData)
    }

    fn read_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<S::Value, Misfit> {
        seed.deserialize(self).map_err(|misfit| misfit.of(&self.kind(), self.text()))
    }
}

fn takes<T>(takes: impl Into<String>) -> Result<T, Misfit> {
    Err(Misfit::takes(takes))
}

macro_rules! whole {
    ($($method:ident $visit:ident $type:ty, $takes:expr;)+) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            let read: Option<$type> = match self {
                Self::Json(Value::Number(number)) => {
                    number.as_u64().and_then(|number| number.try_into().ok())
                }
                Self::Parameter(text) => text.parse().ok(),
                Self::Nothing | Self::Json(_) | Self::Query(_) => None,
            };
            match read {
                Some(number) => visitor.$visit(number),
                None => takes($takes),
            }
        }
    )+ };
}

impl<'de> Deserializer<'de> for Given<'de> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self {
            Self::Nothing | Self::Json(Value::Null) => visitor.visit_unit(),
            Self::Json(Value::Bool(value)) => visitor.visit_bool(*value),
            Self::Json(Value::Number(number)) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (None, Some(number), _) => visitor.visit_i64(number),
                (None, None, Some(number)) => visitor.visit_f64(number),
                (None, None, None) => takes("a smaller number"),
            },
            Self::Json(Value::Array(values)) => visitor.visit_seq(Elements { values, index: 0 }),
            Self::Json(Value::Object(fields)) => {
                visitor.visit_map(Fields { fields: fields.iter(), value: None })
            }
            Self::Query(pairs) => visitor.visit_map(Parameters { pairs, value: None }),
            Self::Json(Value::String(text)) => visitor.visit_borrowed_str(text),
            Self::Parameter(text) => visitor.visit_borrowed_str(text),
        }
    }

    whole! {
        deserialize_u32 visit_u32 u32, format!("a whole number from 0 to {}", u32::MAX);
        deserialize_u64 visit_u64 u64, "a whole number of 0 or more";
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self {
            Self::Json(Value::Bool(value)) => visitor.visit_bool(*value),
            Self::Parameter("true") => visitor.visit_bool(true),
            Self::Parameter("false") => visitor.visit_bool(false),
            Self::Nothing | Self::Json(_) | Self::Query(_) | Self::Parameter(_) => takes("true or false"),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.text() {
            Some(_) => self.deserialize_any(visitor),
            None => takes("a text"),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self {
            Self::Nothing | Self::Json(Value::Null) => visitor.visit_none(),
            Self::Json(_) | Self::Query(_) | Self::Parameter(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self {
            Self::Json(Value::Array(_)) => self.deserialize_any(visitor),
            Self::Nothing | Self::Json(_) | Self::Query(_) | Self::Parameter(_) => takes("a list"),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self {
            Self::Json(Value::Object(_)) | Self::Query(_) => self.deserialize_any(visitor),
            Self::Nothing | Self::Json(_) | Self::Parameter(_) => takes("an object"),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self {
            Self::Json(Value::Object(_)) | Self::Query(_) => self.deserialize_any(visitor),
            Self::Nothing | Self::Json(_) | Self::Parameter(_) => {
                takes(format!("an object with {}", listed(fields, "and")))
            }
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.text() {
            Some(text) => visitor.visit_enum(text.into_deserializer()),
            None => takes(listed(variants, "or")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
        ignored_any
    }
}

struct Elements<'a> {
    values: &'a [Value],
    index: usize,
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        let Some(value) = self.values.get(self.index) else { return Ok(None) };
        let read = Given::Json(value).read_seed(seed).map_err(|misfit| misfit.in_list(self.index))?;
        self.index += 1;
        Ok(Some(read))
    }
}

struct Fields<'a> {
    fields: serde_json::map::Iter<'a>,
    value: Option<(&'a str, &'a Value)>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        let Some((name, value)) = self.fields.next() else { return Ok(None) };
        self.value = Some((name, value));
        seed.deserialize(Given::Parameter(name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Misfit> {
        let Some((name, value)) = self.value.take() else { return Err(Misfit::custom("a name first")) };
        Given::Json(value).read_seed(seed).map_err(|misfit| misfit.in_field(name))
    }
}

struct Parameters<'a> {
    pairs: &'a [(Cow<'a, str>, Cow<'a, str>)],
    value: Option<(&'a str, &'a str)>,
}

impl<'de> MapAccess<'de> for Parameters<'de> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        let Some(((name, value), rest)) = self.pairs.split_first() else { return Ok(None) };
        self.pairs = rest;
        self.value = Some((name, value));
        seed.deserialize(Given::Parameter(name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Misfit> {
        let Some((name, value)) = self.value.take() else { return Err(Misfit::custom("a name first")) };
        Given::Parameter(value).read_seed(seed).map_err(|misfit| misfit.in_field(name))
    }
}
