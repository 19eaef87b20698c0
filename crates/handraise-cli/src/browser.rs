//! Opening the sign-in link in a browser without showing it to the machine (S11).
//!
//! Arguments can be read by every user of the machine, so the browser gets the name of a 0600 file that redirects.

use std::{
    fs::OpenOptions,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::Context as _;

/// The redirecting file's name in the data directory.
const FILE: &str = "sign-in.html";

/// A redirecting file; removed when dropped.
pub(crate) struct Redirect {
    path: PathBuf,
}

impl Redirect {
    /// Writes the file for a link.
    pub(crate) fn write(data_dir: &Path, link: &str) -> anyhow::Result<Self> {
        let path = data_dir.join(FILE);
        // One that a killed run has left, with a secret that is no longer good.
        let _ = std::fs::remove_file(&path);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let redirect = Self { path };
        file.write_all(page(link).as_bytes())
            .with_context(|| format!("cannot write {}", redirect.path.display()))?;
        Ok(redirect)
    }

    /// Hands the file to the desktop's browser.
    pub(crate) fn open(&self) -> anyhow::Result<()> {
        let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let mut child = tokio::process::Command::new(program)
            .arg(&self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {program}"))?;
        // It is not one of the children that end with us.
        handraise_transport::spawn::spare_children();
        tokio::spawn(async move { child.wait().await });
        Ok(())
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A page that goes to the link. Links are made of a URL and a base64url secret, and are escaped all the same.
fn page(link: &str) -> String {
    let link = link.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={link}\"><title>handraise</title>\
         <p><a href=\"{link}\">Sign in to handraise</a></p>\n"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn s11_the_browser_gets_a_private_file_that_is_gone_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::write(&path, "left by a killed run").unwrap();
        let redirect =
            Redirect::write(folder.path(), "http://127.0.0.1:7345/#sign-in=abc\"><script>").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("url=http://127.0.0.1:7345/#sign-in=abc&quot;>&lt;script>"), "{text}");
        drop(redirect);
        assert!(!path.exists());
    }
}
