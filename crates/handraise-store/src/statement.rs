//! What is to be written, and what came of it, in terms of no database in particular.

use crate::error::Failure;

/// Statements that belong together: all of them are committed, or none. They share their parameters. A later one may ask
/// with `changes()` what the one before it changed.
pub(crate) type Sql = &'static [&'static str];

/// A value of a parameter or of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Text(String),
}

/// Statements with the values of their parameters: the first stands for `$1`.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) sql: Sql,
    pub(crate) values: Vec<Value>,
    /// See [`ahead`](Self::ahead).
    pub(crate) is_ahead: bool,
}

impl Statement {
    pub(crate) const fn new(sql: Sql) -> Self {
        Self { sql, values: Vec::new(), is_ahead: false }
    }

    /// Goes ahead of what waits to be written: a person waits for it.
    pub(crate) const fn ahead(mut self) -> Self {
        self.is_ahead = true;
        self
    }

    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Integer(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Self {
        Self::Text(value.clone())
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<&Option<String>> for Value {
    fn from(value: &Option<String>) -> Self {
        value.as_deref().into()
    }
}

/// A row's values, in the order of its columns.
#[derive(Debug)]
pub(crate) struct Row(Vec<Value>);

impl Row {
    pub(crate) const fn new(values: Vec<Value>) -> Self {
        Self(values)
    }

    fn read<T: FromColumns>(self) -> Result<T, Failure> {
        T::from_columns(&mut Columns(self.0.into_iter()))
    }
}

/// What is read from a value.
pub(crate) trait Column: Sized {
    /// `None`: it is something else.
    fn read(value: Value) -> Option<Self>;
}

impl Column for i64 {
    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Integer(value) => Some(value),
            Value::Null | Value::Text(_) => None,
        }
    }
}

impl Column for bool {
    fn read(value: Value) -> Option<Self> {
        i64::read(value).map(|value| value != 0)
    }
}

impl Column for String {
    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Text(value) => Some(value),
            Value::Null | Value::Integer(_) => None,
        }
    }
}

impl<T: Column> Column for Option<T> {
    fn read(value: Value) -> Option<Self> {
        if value == Value::Null { Some(None) } else { T::read(value).map(Some) }
    }
}

/// The values of a row, one after the other.
#[derive(Debug)]
pub(crate) struct Columns(std::vec::IntoIter<Value>);

impl Columns {
    /// The next column, which has that name.
    pub(crate) fn take<T: Column>(&mut self, name: &'static str) -> Result<T, Failure> {
        let value = self.0.next().and_then(T::read);
        value.ok_or_else(|| Failure::row("written", format!("the column '{name}' is not what it should be")))
    }
}

/// What a row is read into.
pub(crate) trait FromColumns: Sized {
    /// The names of the columns in their order, where they have any.
    #[cfg(test)]
    const COLUMNS: &[&'static str] = &[];

    /// Takes the columns in their order.
    fn from_columns(columns: &mut Columns) -> Result<Self, Failure>;
}

impl<A: Column> FromColumns for (A,) {
    fn from_columns(columns: &mut Columns) -> Result<Self, Failure> {
        Ok((columns.take("1")?,))
    }
}

impl<A: Column, B: Column> FromColumns for (A, B) {
    fn from_columns(columns: &mut Columns) -> Result<Self, Failure> {
        Ok((columns.take("1")?, columns.take("2")?))
    }
}

/// What each of a caller's statements came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome(Vec<Part>);

/// What one statement came to.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// How many rows it changed, what its triggers changed not counted.
    pub(crate) changed: u64,
    /// What it yielded.
    pub(crate) rows: Vec<Row>,
}

impl Outcome {
    pub(crate) const fn new(parts: Vec<Part>) -> Self {
        Self(parts)
    }

    /// How many rows the statement with that place changed.
    pub(crate) fn changed(&self, place: usize) -> u64 {
        self.0.get(place).map_or(0, |part| part.changed)
    }

    /// What the statement with that place yielded. It can be taken once.
    pub(crate) fn rows<T: FromColumns>(&mut self, place: usize) -> Result<Vec<T>, Failure> {
        let rows = self.0.get_mut(place).map(|part| std::mem::take(&mut part.rows)).unwrap_or_default();
        rows.into_iter().map(Row::read).collect()
    }

    /// The first of what the statement with that place yielded. It can be taken once.
    pub(crate) fn row<T: FromColumns>(&mut self, place: usize) -> Result<Option<T>, Failure> {
        let rows = self.0.get_mut(place).map(|part| std::mem::take(&mut part.rows)).unwrap_or_default();
        rows.into_iter().next().map(Row::read).transpose()
    }
}
