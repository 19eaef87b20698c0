//! The environment as a value.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

/// The environment variables of a process, taken once at its start.
///
/// `Debug` shows names only: values may be secrets.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The environment of this process. The binary's `main` calls this once and passes the value down.
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// The value of a variable; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The value of a variable, also an empty one: for what must not be taken for unset.
    pub fn given(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable that holds an absolute path; a relative one is ignored, as the XDG base directory rules demand.
    pub fn absolute_path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// Every variable, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The user's home directory.
    pub fn home(&self) -> Option<PathBuf> {
        self.absolute_path("HOME")
    }

    /// `$XDG_DATA_HOME`, else `~/.local/share`.
    pub fn data_home(&self) -> Option<PathBuf> {
        self.absolute_path("XDG_DATA_HOME").or_else(|| self.home().map(|home| home.join(".local/share")))
    }

    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    pub fn config_home(&self) -> Option<PathBuf> {
        self.absolute_path("XDG_CONFIG_HOME").or_else(|| self.home().map(|home| home.join(".config")))
    }

    /// Whether a graphical session is there to open a browser in.
    pub fn has_display(&self) -> bool {
        self.get("DISPLAY").is_some() || self.get("WAYLAND_DISPLAY").is_some()
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn relative_base_directories_are_ignored() {
        let environment = Environment::from_iter([
            ("HOME", "/home/ada"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_CONFIG_HOME", "/c"),
        ]);
        assert_eq!(environment.data_home().as_deref(), Some(Path::new("/home/ada/.local/share")));
        assert_eq!(environment.config_home().as_deref(), Some(Path::new("/c")));
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let environment = Environment::from_iter([("HANDRAISE_INBOX", "")]);
        assert_eq!(environment.get("HANDRAISE_INBOX"), None);
        assert_eq!(environment.given("HANDRAISE_INBOX"), Some(OsStr::new("")));
        assert_eq!(environment.given("HANDRAISE_TOKEN"), None);
    }

    #[test]
    fn debug_shows_no_values() {
        let shown = format!("{:?}", Environment::from_iter([("HANDRAISE_TOKEN", "hunter2")]));
        assert!(shown.contains("HANDRAISE_TOKEN") && !shown.contains("hunter2"), "{shown}");
    }
}
