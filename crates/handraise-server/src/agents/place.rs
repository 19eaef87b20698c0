//! Whether an agent can be started at all: where it is to run, and its program. Looked at beforehand, so that whoever
//! starts it hears at once what to change.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use handraise_transport::{escape, program};
use rustix::fs::{Access, access};

use crate::settings::AgentSettings;

/// How many characters of a path are quoted.
const QUOTED: usize = 300;

/// Where an agent is to run, and who says so.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) cwd: PathBuf,
    /// `'cwd'`, or that of the configuration.
    said_by: String,
}

impl Place {
    /// The request's word, else the configuration's.
    pub(super) fn of(agent: &AgentSettings, wanted: Option<String>) -> Result<Self, String> {
        let configured = || {
            let said_by = format!("'cwd' of the [[agent]] '{}'", agent.id);
            agent.cwd.clone().map(|cwd| Self { cwd, said_by })
        };
        let wanted = wanted.map(|cwd| Self { cwd: cwd.into(), said_by: "'cwd'".to_owned() });
        match wanted.or_else(configured) {
            Some(place) if place.cwd.is_absolute() => Ok(place),
            Some(place) => Err(format!("{place} and takes an absolute path")),
            None => Err("say where it runs: 'cwd' here, or in its [[agent]] entry".to_owned()),
        }
    }

    /// Whether the place and the program are there. Blocks.
    pub(super) fn check(&self, command: &[String], search_path: Option<&OsStr>) -> Result<(), String> {
        self.check_directory()?;
        let Some(first) = command.first() else { return Ok(()) };
        // A relative path is one from where the agent runs; a name is looked for where PATH leads.
        let names_a_path = first.contains('/');
        let found = if names_a_path { self.cwd.join(first).into() } else { OsString::from(first) };
        let folders: Vec<PathBuf> = match search_path {
            Some(path) => std::env::split_paths(path).collect(),
            None if names_a_path => Vec::new(),
            None => return Ok(()),
        };
        program::find(&[found], &folders)
            .map_err(|missing| format!("{missing}; it is the 'command' of the [[agent]]"))
    }

    fn check_directory(&self) -> Result<(), String> {
        let cwd = self.cwd.as_path();
        match cwd.metadata() {
            Ok(found) if !found.is_dir() => Err(format!("{self}, which is no directory; name one")),
            Ok(_) if access(cwd, Access::EXEC_OK).is_err() => {
                Err(format!("{self}, which the inbox's user may not enter; change its mode, or name another"))
            }
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(format!("{self}, which is not there; make it, or name another"))
            }
            Err(error) => Err(format!("{self}, which cannot be used: {error}")),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is \"{}\"", self.said_by, shown(&self.cwd))
    }
}

fn shown(path: &Path) -> String {
    escape::shortened(&path.to_string_lossy(), QUOTED)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn agent(cwd: Option<&Path>) -> AgentSettings {
        AgentSettings { id: "a".into(), command: Vec::new(), cwd: cwd.map(Path::to_owned) }
    }

    #[test]
    fn a_place_is_named_with_who_named_it() {
        let gone = Path::new("/not/there");
        let asked = Place::of(&agent(None), Some("/not/there".into())).unwrap();
        let said = asked.check(&[], None).unwrap_err();
        assert_eq!(said, "'cwd' is \"/not/there\", which is not there; make it, or name another");
        let configured = Place::of(&agent(Some(gone)), None).unwrap().check(&[], None).unwrap_err();
        assert!(configured.starts_with("'cwd' of the [[agent]] 'a' is \"/not/there\""), "{configured}");
        let relative = Place::of(&agent(Some(gone)), Some("src".into())).unwrap_err();
        assert!(relative.contains("\"src\"") && relative.contains("absolute"), "{relative}");
        assert!(Place::of(&agent(None), Some("/dev/null".into())).unwrap().check(&[], None).is_err());
    }

    #[test]
    fn a_relative_program_is_one_from_where_the_agent_runs() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::of(&agent(Some(dir.path())), None).unwrap();
        let check = |program: &str, path: Option<&str>| place.check(&[program.into()], path.map(OsStr::new));
        assert!(check("./run", None).unwrap_err().contains("/run\""));
        std::fs::write(dir.path().join("run"), "").unwrap();
        assert!(check("./run", None).unwrap_err().contains("permissions"));
        std::fs::set_permissions(dir.path().join("run"), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(check("./run", None), Ok(()));
        assert!(check("run", Some("/not/there")).unwrap_err().contains("PATH"));
        assert_eq!(check("run", dir.path().to_str()), Ok(()));
        assert_eq!(check("run", None), Ok(()), "nobody knows where it would be looked for");
    }
}
