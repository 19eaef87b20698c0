//! The environment that children get (S7).

use std::ffi::{OsStr, OsString};

use crate::environment::Environment;

/// Beginnings of names that belong to handraise and its kin, and to databases.
const WITHHELD_PREFIXES: &[&str] = &["HANDRAISE_", "KANDEV_", "MCP_CONFIRM_"];
/// Names that are withheld although their beginning is not.
const WITHHELD_NAMES: &[&str] = &[
    "AUTOMOBILE_ELICITATION",
    "DATABASE_URL",
    "MCP_HOST_CONFIRM_SECRET",
    "PGPASSFILE",
    "PGPASSWORD",
    "POSTGRES_URL",
];

/// Our environment as an agent or upstream server may see it: without our settings, secrets and database URLs,
/// except the names in `pass_env`.
pub fn environment(ours: &Environment, pass_env: &[String]) -> Vec<(OsString, OsString)> {
    ours.iter()
        .filter(|(name, _)| !is_withheld(name) || pass_env.iter().any(|passed| OsStr::new(passed) == *name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Whether a variable is kept from children unless `pass_env` names it.
pub fn is_withheld(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    WITHHELD_PREFIXES.iter().any(|prefix| bytes.starts_with(prefix.as_bytes()))
        || WITHHELD_NAMES.iter().any(|withheld| bytes == withheld.as_bytes())
        || bytes.ends_with(b"_DATABASE_URL")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pass_env: &[&str], ours: &[&str]) -> Vec<String> {
        let ours = ours.iter().map(|name| (*name, "x")).collect();
        let pass_env: Vec<String> = pass_env.iter().map(|name| (*name).to_owned()).collect();
        environment(&ours, &pass_env).into_iter().map(|(name, _)| name.into_string().unwrap()).collect()
    }

    #[test]
    fn s7_children_get_our_environment_without_our_settings_and_secrets() {
        let ours = [
            "ANTHROPIC_API_KEY",
            "AUTOMOBILE_ELICITATION",
            "DATABASE_URL",
            "HANDRAISE_TOKEN",
            "KANDEV_ACP_IDLE_TIMEOUT",
            "MCP_CONFIRM_SECRET",
            "MCP_HOST_CONFIRM_SECRET",
            "PATH",
            "STAGING_DATABASE_URL",
        ];
        assert_eq!(names(&[], &ours), ["ANTHROPIC_API_KEY", "PATH"]);
    }

    #[test]
    fn s7_pass_env_names_exceptions() {
        assert_eq!(
            names(
                &["DATABASE_URL", "HANDRAISE_INBOX"],
                &["DATABASE_URL", "HANDRAISE_INBOX", "HANDRAISE_TOKEN"]
            ),
            ["DATABASE_URL", "HANDRAISE_INBOX"]
        );
    }
}
