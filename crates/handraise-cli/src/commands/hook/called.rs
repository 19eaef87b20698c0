//! The path of this program, as whoever called it found it: a link that a package manager keeps up to date, and not what it leads
//! to today.

use std::{
    env,
    ffi::OsStr,
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf, absolute},
};

/// Where the program is that was called by this name: the path that the name is, or the first program of this name in the
/// folders of `search` (`PATH`); else what runs.
///
/// # Errors
/// When neither can be told.
pub(super) fn by(name: Option<&OsStr>, search: Option<&OsStr>) -> io::Result<PathBuf> {
    let found = name.filter(|name| !name.is_empty()).and_then(|name| {
        if Path::new(name).components().count() > 1 {
            return absolute(name).ok().filter(|path| is_program(path));
        }
        env::split_paths(search?)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|path| is_program(path))
    });
    found.map_or_else(env::current_exe, Ok)
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_link_stays_a_link_and_a_bare_name_is_found_as_a_shell_finds_it() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        for folder in ["a", "b", "real"] {
            std::fs::create_dir(at(folder)).unwrap();
        }
        std::fs::write(at("a/handraise"), "not executable").unwrap();
        std::fs::set_permissions(at("a/handraise"), Permissions::from_mode(0o600)).unwrap();
        std::fs::write(at("real/handraise-1.2"), "").unwrap();
        std::fs::set_permissions(at("real/handraise-1.2"), Permissions::from_mode(0o700)).unwrap();
        symlink(at("real/handraise-1.2"), at("b/handraise")).unwrap();
        let search = env::join_paths([at("a"), "relative".into(), at("b")]).unwrap();
        let called = |name: &Path| by(Some(name.as_os_str()), Some(&search)).unwrap();
        assert_eq!(called(Path::new("handraise")), at("b/handraise"));
        assert_eq!(called(&at("b/handraise")), at("b/handraise"));
        let ours = env::current_exe().unwrap();
        assert_eq!(called(Path::new("nowhere")), ours);
        assert_eq!(called(Path::new("./nowhere")), ours);
        assert_eq!(by(None, None).unwrap(), ours);
    }
}
