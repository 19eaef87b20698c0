//! Which of a setting's values wins, and whether each is one.

use std::path::Path;

use super::{Flags, Origin, Sourced};
use crate::{
    environment::Environment,
    error::ConfigError,
    file::ConfigFile,
    registry::{Default, Kind, SETTINGS, Setting},
    value::Raw,
};

/// The sources of one start.
pub(super) struct Reader<'a> {
    pub(super) flags: &'a Flags,
    pub(super) environment: &'a Environment,
    pub(super) file: Option<&'a ConfigFile>,
    pub(super) home: Option<&'a Path>,
}

impl<'a> Reader<'a> {
    /// Every value that was given for a setting, the winner first.
    fn given(&self, setting: &'static Setting) -> Result<Vec<(Raw<'a>, Origin)>, ConfigError> {
        let mut given = Vec::new();
        if let Some(text) = self.flags.0.get(setting.key) {
            given.push((Raw::Text(text), Origin::Flag(setting.flag.unwrap_or("a flag"))));
        }
        for name in setting.variables() {
            let variable = self.environment.given(&name);
            if let Some(value) = variable.filter(|value| !value.is_empty() || setting.takes_empty()) {
                let origin = Origin::Environment(name);
                let text = value.to_str().ok_or_else(|| ConfigError::Value {
                    origin: origin.clone(),
                    value: "not UTF-8".to_owned(),
                    expected: "it takes text".to_owned(),
                })?;
                given.push((Raw::Text(text), origin));
            }
        }
        if let Some(file) = self.file
            && let Some(value) = file.value(setting.key)
        {
            given.push((Raw::Toml(value), Origin::File { key: setting.key, place: file.place(setting.key) }));
        }
        if let Default::Value(text) = setting.default {
            given.push((Raw::Text(text), Origin::Default));
        }
        Ok(given)
    }

    /// Judges every given value: a wrong one is a mistake even while another wins.
    pub(super) fn check_all(&self) -> Result<(), ConfigError> {
        for setting in SETTINGS {
            for (raw, origin) in self.given(setting)? {
                raw.fits(setting, self.home).map_err(|expected| wrong(setting, raw, origin, expected))?;
            }
        }
        Ok(())
    }

    pub(super) fn optional<T>(
        &self,
        setting: &'static Setting,
        read: impl FnOnce(Raw<'a>) -> Result<T, String>,
    ) -> Result<Option<Sourced<T>>, ConfigError> {
        let Some((raw, origin)) = self.given(setting)?.into_iter().next() else { return Ok(None) };
        match read(raw) {
            Ok(value) => Ok(Some(Sourced { value, origin })),
            Err(expected) => Err(wrong(setting, raw, origin, expected)),
        }
    }

    pub(super) fn required<T>(
        &self,
        setting: &'static Setting,
        read: impl FnOnce(Raw<'a>) -> Result<T, String>,
    ) -> Result<Sourced<T>, ConfigError> {
        self.optional(setting, read)?.ok_or_else(|| ConfigError::Value {
            origin: Origin::Default,
            value: "unset".to_owned(),
            expected: format!("'{}' needs a value", setting.key),
        })
    }

    pub(super) fn integer(&self, setting: &'static Setting) -> Result<u64, ConfigError> {
        let (least, most) = match setting.kind {
            Kind::Integer { least, most } => (least, most),
            _ => (0, u64::MAX),
        };
        self.required(setting, |raw| raw.integer(least, most)).map(|number| number.value)
    }

    pub(super) fn word(&self, setting: &'static Setting) -> Result<&'static str, ConfigError> {
        let words = match setting.kind {
            Kind::Word(words) => words,
            _ => &[],
        };
        self.required(setting, |raw| raw.word(words)).map(|word| word.value)
    }
}

fn wrong(setting: &Setting, raw: Raw<'_>, origin: Origin, expected: String) -> ConfigError {
    let value = if setting.is_secret { "(hidden)".to_owned() } else { raw.shown() };
    ConfigError::Value { origin, value, expected }
}
