//! Certificates that nobody but the tests trusts.

use std::process::Command;

use super::{Home, stderr};

/// A certificate for `localhost` by an authority that nobody but the test trusts: both PEM, and the key.
pub(crate) fn certificates(home: &Home) -> Option<[String; 3]> {
    let file = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let [authority, authority_key, certificate, key] = ["ca.pem", "ca.key", "cert.pem", "cert.key"].map(file);
    let openssl = |arguments: &[&str]| Command::new("openssl").args(arguments).output();
    let new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
    let own = ["-keyout", &authority_key, "-out", &authority, "-subj", "/CN=the tests"];
    let output = openssl(&[&new[..], &own].concat()).ok()?;
    assert!(output.status.success(), "{}", stderr(&output));
    let signed = ["-CA", &authority, "-CAkey", &authority_key, "-keyout", &key, "-out", &certificate];
    let names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    let output =
        openssl(&[&new[..], &signed, &names, &["-addext", "basicConstraints=critical,CA:FALSE"]].concat())
            .ok()?;
    assert!(output.status.success(), "{}", stderr(&output));
    Some([authority, certificate, key])
}
