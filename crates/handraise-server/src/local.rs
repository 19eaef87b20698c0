//! What other programs of this user find in the data directory: the lock, the socket, and `inbox.json`.

use std::{
    fs::{File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use handraise_api::access::{CreateToken, Scope};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use tokio::net::UnixListener;

use crate::{access::Access, error::ServeError};

/// The name of the tokens in `inbox.json`.
pub(crate) const TOKEN_NAME: &str = "local";

const LOCK: &str = "inbox.lock";
const SOCKET: &str = "inbox.sock";
const INBOX: &str = "inbox.json";

/// `inbox.json`: where the inbox is, and what opens it for this user's own programs. Mode 0600.
///
/// `Debug` hides the tokens.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxFile {
    /// Where browsers reach it.
    pub url: String,
    /// The socket for holders and local tools.
    pub socket: PathBuf,
    /// For holders.
    pub holder_token: String,
    /// For tools.
    pub admin_token: String,
}

impl InboxFile {
    /// Reads the file of a data directory.
    ///
    /// # Errors
    /// When it is not there, or is no such file.
    pub fn read(data_dir: &Path) -> io::Result<Self> {
        let text = std::fs::read(data_dir.join(INBOX))?;
        // The error's text would quote the file, which holds tokens.
        serde_json::from_slice(&text)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("line {}", error.line())))
    }

    /// Puts the file in place at once: readers see the old one or the new one.
    fn write(&self, data_dir: &Path) -> io::Result<()> {
        let path = data_dir.join(INBOX);
        let draft = data_dir.join(format!("{INBOX}.new"));
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        std::fs::rename(&draft, &path)
    }
}

impl std::fmt::Debug for InboxFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InboxFile")
            .field("url", &self.url)
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> ServeError {
    let path = path.to_owned();
    |source| ServeError::File { path, source }
}

/// Takes the data directory for this process until the file is dropped.
pub(crate) fn lock(data_dir: &Path) -> Result<File, ServeError> {
    let path = data_dir.join(LOCK);
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(file(&path))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(ServeError::InUse { data_dir: data_dir.to_owned() }),
        Err(error) => Err(ServeError::File { path, source: error.into() }),
    }
}

/// Listens on the socket file; one that an earlier run left behind is replaced.
pub(crate) fn listen(data_dir: &Path) -> Result<(UnixListener, PathBuf), ServeError> {
    let path = std::path::absolute(data_dir).map_err(file(data_dir))?.join(SOCKET);
    let failed = |source| ServeError::Socket { path: path.clone(), source };
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&path).map_err(failed)?;
    // The directory is ours alone, so nobody came in between.
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed)?;
    Ok((listener, path))
}

/// Writes `inbox.json`. Tokens of an earlier run that are still good are kept, so that holders that know them go on.
pub(crate) async fn announce(
    data_dir: &Path,
    url: &str,
    socket: &Path,
    access: &Access,
) -> Result<(), ServeError> {
    let earlier = InboxFile::read(data_dir).ok();
    let good = |secret: &str, scope: Scope| {
        access.authenticate(secret).is_some_and(|grant| grant.token.scope == scope)
    };
    let holder = earlier.as_ref().map(|earlier| earlier.holder_token.clone());
    let admin = earlier.map(|earlier| earlier.admin_token);
    let mut tokens = Vec::new();
    for (known, scope) in [(holder, Scope::Holder), (admin, Scope::Admin)] {
        let token = if let Some(token) = known.filter(|secret| good(secret, scope)) {
            token
        } else {
            let wanted = CreateToken { scope, name: Some(TOKEN_NAME.into()), owner: None, expires: None };
            access.create(&wanted).await.map_err(|_| ServeError::NoToken)?.1
        };
        tokens.push(token);
    }
    let [holder_token, admin_token] = <[String; 2]>::try_from(tokens).map_err(|_| ServeError::NoToken)?;
    let path = data_dir.join(INBOX);
    InboxFile { url: url.to_owned(), socket: socket.to_owned(), holder_token, admin_token }
        .write(data_dir)
        .map_err(file(&path))
}
