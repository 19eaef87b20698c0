//! Variables that look like settings.

use crate::{
    environment::Environment,
    file::closest,
    registry::{OTHER_VARIABLES, SETTINGS},
};

/// Variables that begin like ours and are none. They are no error, as a newer version or another program may own them, but
/// nobody should think that they change something.
pub(super) fn strange_variables(environment: &Environment) -> Vec<String> {
    let known: Vec<String> = SETTINGS
        .iter()
        .flat_map(|setting| setting.variables())
        .chain(OTHER_VARIABLES.iter().map(|(name, _)| (*name).to_owned()))
        .collect();
    environment
        .iter()
        .filter_map(|(name, _)| name.to_str())
        .filter(|name| name.starts_with("HANDRAISE_") && !known.iter().any(|known| known == name))
        .map(|name| {
            match closest(name, known.iter().map(String::as_str).filter(|known| is_near(name, known))) {
                Some(meant) => {
                    format!("the environment variable {name} is no setting; did you mean {meant}?")
                }
                None => format!(
                    "the environment variable {name} is no setting of this version and changes nothing; \
                     docs/configuration.md lists the settings"
                ),
            }
        })
        .collect()
}

/// Whether two names differ by a slip of the keyboard. The common beginning makes every two of ours look alike
/// otherwise.
fn is_near(name: &str, known: &str) -> bool {
    strsim::damerau_levenshtein(name, known) <= 2
}
