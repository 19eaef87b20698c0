//! The config file: whatever it says is a setting or an error that people can read.

use handraise_config::{ConfigFile, Environment, Flags, load};

/// Reads bytes as the config file.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let loaded = ConfigFile::parse("/etc/handraise.toml", text)
        .and_then(|file| load(&Flags::default(), &Environment::default(), Some(&file)));
    match loaded {
        Ok(settings) => {
            // What was read is read once more, the same.
            let file = ConfigFile::parse("/etc/handraise.toml", text);
            let again = file.and_then(|file| load(&Flags::default(), &Environment::default(), Some(&file)));
            assert_eq!(again.map(|again| format!("{again:?}")).ok(), Some(format!("{settings:?}")));
        }
        Err(error) => assert!(!error.to_string().trim().is_empty()),
    }
}
