//! From a raw value (text of a flag, a variable or a default; a TOML value) to a typed one.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use crate::{
    duration,
    registry::{Kind, Setting},
};

/// A value that no log shows: `Debug` prints `•`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("•")
    }
}

/// A value before its setting has judged it.
#[derive(Clone, Copy)]
pub(crate) enum Raw<'a> {
    /// From a flag, a variable or the registry.
    Text(&'a str),
    /// From the config file.
    Toml(&'a toml::Value),
}

impl Raw<'_> {
    /// The value for an error message.
    pub(crate) fn shown(self) -> String {
        const LONGEST: usize = 80;
        let text = match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Toml(value) => value.to_string().trim_end().to_owned(),
        };
        if text.chars().count() <= LONGEST {
            return text;
        }
        format!("{}…", text.chars().take(LONGEST).collect::<String>())
    }

    pub(crate) fn bool(self) -> Result<bool, String> {
        let word = match self {
            Self::Toml(toml::Value::Boolean(value)) => return Ok(*value),
            Self::Toml(toml::Value::String(text)) => text.as_str(),
            Self::Text(text) => text,
            Self::Toml(_) => "",
        };
        match word.to_ascii_lowercase().as_str() {
            "on" | "true" | "yes" | "1" => Ok(true),
            "off" | "false" | "no" | "0" => Ok(false),
            _ => Err("it takes on or off".to_owned()),
        }
    }

    pub(crate) fn text(self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text.to_owned()),
            Self::Toml(toml::Value::String(text)) => Ok(text.clone()),
            Self::Toml(_) => Err("it takes text in quotes".to_owned()),
        }
    }

    pub(crate) fn duration(self) -> Result<Duration, String> {
        let text = self.text().map_err(|_| duration::InvalidDuration::NoUnit.to_string())?;
        duration::parse(&text).map_err(|error| error.to_string())
    }

    pub(crate) fn integer(self, least: u64, most: u64) -> Result<u64, String> {
        let number = match self {
            Self::Text(text) => text.parse().ok(),
            Self::Toml(toml::Value::Integer(number)) => u64::try_from(*number).ok(),
            Self::Toml(_) => None,
        };
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| format!("it takes a whole number from {least} to {most}"))
    }

    pub(crate) fn address(self) -> Result<SocketAddr, String> {
        let text = self.text()?;
        text.parse()
            .map_err(|_| "it takes an IP address and a port, such as 127.0.0.1:7345 or [::1]:7345".to_owned())
    }

    /// A path. In the file it must be absolute or begin with `~/`: a file has no working directory.
    pub(crate) fn path(self, home: Option<&std::path::Path>) -> Result<PathBuf, String> {
        let text = self.text()?;
        if text.is_empty() || text.contains('\0') {
            return Err("it takes a path".to_owned());
        }
        let Self::Toml(_) = self else { return Ok(PathBuf::from(text)) };
        absolute(&text, home)
    }

    pub(crate) fn word(self, words: &'static [&'static str]) -> Result<&'static str, String> {
        let text = self.text().unwrap_or_default();
        words
            .iter()
            .find(|word| **word == text)
            .copied()
            .ok_or_else(|| format!("it takes one of {}", words.join(", ")))
    }

    pub(crate) fn names(self) -> Result<Vec<String>, String> {
        let names = match self {
            Self::Text(text) => {
                text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
            }
            Self::Toml(value) => strings(value).ok_or("it takes a list of names, such as [\"A\", \"B\"]")?,
        };
        Ok(names)
    }

    /// Whether it fits the setting; used to check values that a command does not read.
    pub(crate) fn fits(self, setting: &Setting, home: Option<&std::path::Path>) -> Result<(), String> {
        match setting.kind {
            Kind::Bool => self.bool().map(drop),
            Kind::Duration => self.duration().map(drop),
            Kind::Integer { least, most } => self.integer(least, most).map(drop),
            Kind::Text => self.text().map(drop),
            Kind::Path => self.path(home).map(drop),
            Kind::Address => self.address().map(drop),
            Kind::Word(words) => self.word(words).map(drop),
            Kind::Names => self.names().map(drop),
        }
    }
}

/// A path of the config file: absolute, or in the home directory.
pub(crate) fn absolute(text: &str, home: Option<&std::path::Path>) -> Result<PathBuf, String> {
    if let Some(rest) = text.strip_prefix("~/") {
        let home = home.ok_or("it begins with ~/ but HOME is not set")?;
        return Ok(home.join(rest));
    }
    let path = PathBuf::from(text);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err("it takes an absolute path, or one that begins with ~/".to_owned())
    }
}

/// A TOML array of strings.
pub(crate) fn strings(value: &toml::Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
