//! Which config file is read, and whether it can be trusted (S2).
//!
//! The working directory is never looked at: a cloned repository must not configure us.

use std::path::{Path, PathBuf};

use crate::{environment::Environment, error::ConfigError};

/// The config file's name in the XDG config directory.
pub const FILE_NAME: &str = "handraise.toml";
/// The largest config file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Where it is.
    pub path: PathBuf,
    /// Whether somebody named it, so that its absence is an error.
    pub named: bool,
}

/// The config file: `--config`, else `HANDRAISE_CONFIG`, else `handraise/handraise.toml` in the XDG config
/// directory; `None` without a home.
pub fn candidate(flag: Option<&Path>, environment: &Environment) -> Option<Candidate> {
    if let Some(path) = flag {
        return Some(Candidate { path: path.to_owned(), named: true });
    }
    if let Some(path) = environment.get("HANDRAISE_CONFIG") {
        return Some(Candidate { path: PathBuf::from(path), named: true });
    }
    let home = environment.config_home()?;
    Some(Candidate { path: home.join("handraise").join(FILE_NAME), named: false })
}

/// What the file system says about an opened config file.
#[derive(Debug, Clone, Copy)]
pub struct Ownership {
    /// The permission bits.
    pub mode: u32,
    /// The file's owner.
    pub owner: u32,
    /// Us.
    pub our_user: u32,
    /// Whether it is a regular file.
    pub is_regular: bool,
}

/// Refuses a file that somebody else could have written (S2).
///
/// # Errors
/// When it is group- or world-writable, belongs to neither us nor root, or is no regular file.
pub fn check_ownership(path: &Path, ownership: Ownership) -> Result<(), ConfigError> {
    let untrusted = |problem, remedy| Err(ConfigError::Untrusted { path: path.to_owned(), problem, remedy });
    if !ownership.is_regular {
        return untrusted("is not a regular file", "write the settings to a file");
    }
    if ownership.owner != ownership.our_user && ownership.owner != 0 {
        return untrusted("belongs to another user", "make it yours (chown)");
    }
    if ownership.mode & 0o022 != 0 {
        return untrusted("can be written by others", "take that away (chmod go-w)");
    }
    Ok(())
}

/// Whether others can read a file without having been let in: everybody can, or it is ours and its group can. One of root's that
/// we ourselves read through its group is as it should be.
pub fn is_exposed(ownership: Ownership) -> bool {
    let is_ours = ownership.owner == ownership.our_user;
    ownership.mode & 0o004 != 0 || (is_ours && ownership.mode & 0o040 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_the_working_directory_is_no_candidate() {
        let nowhere = Environment::default();
        assert_eq!(candidate(None, &nowhere), None);
        let home = Environment::from_iter([("HOME", "/home/ada")]);
        let found = candidate(None, &home).unwrap();
        assert_eq!(found.path, Path::new("/home/ada/.config/handraise/handraise.toml"));
        assert!(!found.named);
    }

    #[test]
    fn a_named_file_wins_in_the_order_flag_then_environment() {
        let environment =
            Environment::from_iter([("HOME", "/home/ada"), ("HANDRAISE_CONFIG", "/etc/h.toml")]);
        assert_eq!(candidate(None, &environment).unwrap().path, Path::new("/etc/h.toml"));
        assert_eq!(candidate(Some(Path::new("/f.toml")), &environment).unwrap().path, Path::new("/f.toml"));
    }

    #[test]
    fn a_file_is_exposed_to_whoever_was_not_let_in() {
        let ours = Ownership { mode: 0o100_600, owner: 1000, our_user: 1000, is_regular: true };
        let roots = Ownership { owner: 0, ..ours };
        for (ownership, mode, expected) in [
            (ours, 0o600, false),
            (ours, 0o711, false),
            (ours, 0o640, true),
            (ours, 0o604, true),
            (ours, 0o644, true),
            (roots, 0o640, false),
            (roots, 0o644, true),
        ] {
            assert_eq!(
                is_exposed(Ownership { mode, ..ownership }),
                expected,
                "{mode:o} of {}",
                ownership.owner
            );
        }
    }

    #[test]
    fn s2_a_file_that_others_could_have_written_is_refused() {
        let ours = Ownership { mode: 0o100_644, owner: 1000, our_user: 1000, is_regular: true };
        let check = |ownership| check_ownership(Path::new("/h.toml"), ownership).map_err(|e| e.to_string());
        assert_eq!(check(ours), Ok(()));
        assert_eq!(check(Ownership { owner: 0, ..ours }), Ok(()));
        for mode in [0o100_664, 0o100_646, 0o100_666] {
            assert!(check(Ownership { mode, ..ours }).unwrap_err().contains("chmod go-w"), "{mode:o}");
        }
        assert!(check(Ownership { owner: 1001, ..ours }).unwrap_err().contains("another user"));
        assert!(check(Ownership { is_regular: false, ..ours }).unwrap_err().contains("regular file"));
    }
}
