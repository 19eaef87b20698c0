//! `[[caller]]`.

use std::collections::BTreeSet;

use toml::Value;

use super::entry::entries;
use crate::{error::ConfigError, file::ConfigFile};

/// `[[caller]]`: somebody who may use `handraise mcp --listen` (S10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerEntry {
    /// What it is called: the principal of its requests.
    pub name: String,
    /// The SHA-256 of its token, which is nowhere else.
    pub token_sha256: [u8; 32],
}

pub(crate) fn callers(file: &ConfigFile) -> Result<Vec<CallerEntry>, ConfigError> {
    let mut seen = BTreeSet::new();
    let mut hashes = BTreeSet::new();
    entries(file, "caller", "name", &["name", "token_hash"])?
        .into_iter()
        .map(|entry| {
            let name = entry.name("name", &mut seen)?;
            let hash = entry.table.get("token_hash").and_then(Value::as_str).and_then(sha256);
            let token_sha256 = hash.ok_or_else(|| {
                entry.error(
                    "token_hash takes \"sha256:\" and the 64 hexadecimal digits of the token's SHA-256",
                )
            })?;
            if !hashes.insert(token_sha256) {
                return Err(
                    entry.error("token_hash is that of a caller before it: nobody could tell them apart")
                );
            }
            Ok(CallerEntry { name, token_sha256 })
        })
        .collect()
}

/// Reads `sha256:<64 hexadecimal digits>`.
fn sha256(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("sha256:")?;
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s10_callers_are_known_by_the_hash_of_their_token() {
        let read = |text: &str| {
            let file = ConfigFile::parse("/h.toml", text).map_err(|error| error.to_string())?;
            callers(&file).map_err(|error| error.to_string())
        };
        let (one, other) = ("0f".repeat(32), "F0".repeat(32));
        let caller = |name: &str, hash: &str| format!("[[caller]]\nname = '{name}'\ntoken_hash = '{hash}'\n");
        let callers =
            read(&(caller("ada", &format!("sha256:{one}")) + &caller("bob", &format!("sha256:{other}"))));
        let callers = callers.unwrap();
        assert_eq!((&*callers[0].name, callers[0].token_sha256), ("ada", [0x0f; 32]));
        assert_eq!((&*callers[1].name, callers[1].token_sha256), ("bob", [0xf0; 32]));
        for wrong in ["hunter2", &one, "sha256:", &format!("sha256:{one}0"), "sha256:+f"] {
            let error = read(&caller("ada", wrong)).unwrap_err();
            assert!(error.contains("token_hash takes \"sha256:\"") && !error.contains("hunter2"), "{error}");
        }
        let twice = caller("ada", &format!("sha256:{one}")) + &caller("bob", &format!("sha256:{one}"));
        assert!(read(&twice).unwrap_err().contains("\"bob\": token_hash is that of a caller before it"));
        assert!(read("[[caller]]\nname = 'a'\ntoken = 'x'\n").unwrap_err().contains("token"));
    }
}
