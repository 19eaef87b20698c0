//! TLS, from two PEM files.

use std::{fs::File, io::Read as _, path::Path, sync::Arc};

use rustls::{
    ServerConfig,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
};
use tokio_rustls::TlsAcceptor;

use super::settings::{FrontError, TlsFiles};

/// The most bytes of a PEM file. A chain of certificates has some ten thousand.
const MAX_PEM_BYTES: u64 = 1024 * 1024;

/// What turns connections into encrypted ones.
///
/// # Errors
/// When a file cannot be read, or holds nothing that fits.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, FrontError> {
    let failed = |path: &Path, problem: &dyn std::fmt::Display| FrontError::Tls {
        path: path.to_owned(),
        problem: problem.to_string(),
    };
    let read = |path: &Path| read(path).map_err(|problem| failed(path, &problem));
    let certificates = CertificateDer::pem_slice_iter(&read(&files.certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| failed(&files.certificate, &error))?;
    if certificates.is_empty() {
        return Err(failed(&files.certificate, &"it holds no certificate"));
    }
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?)
        .map_err(|error| failed(&files.key, &told(&error)))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let certificate = files.certificate.display();
                failed(&files.key, &format_args!("it is not the key of the certificate in {certificate}"))
            }
            error => failed(&files.key, &error),
        })?;
    let mut config = config;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A file, as far as it may be long.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_PEM_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_PEM_BYTES {
        return Err(format!("it has more than {MAX_PEM_BYTES} bytes, which no PEM file needs"));
    }
    Ok(bytes)
}

/// What is wrong with a key.
fn told(error: &pem::Error) -> String {
    match error {
        pem::Error::NoItemsFound => "it holds no private key".to_owned(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(certificate: &Path, key: &Path, expected: &str) {
        let files = TlsFiles { certificate: certificate.to_owned(), key: key.to_owned() };
        let error = acceptor(&files).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn s37_a_file_without_end_is_read_no_further_than_a_pem_file_goes() {
        check_refused(
            Path::new("/dev/zero"),
            Path::new("/dev/null"),
            "/dev/zero for TLS: it has more than 1048576 bytes",
        );
    }

    #[test]
    fn files_without_what_they_are_for_are_named() {
        check_refused(
            Path::new("/dev/null"),
            Path::new("/dev/null"),
            "/dev/null for TLS: it holds no certificate",
        );
        check_refused(Path::new("/nowhere"), Path::new("/dev/null"), "/nowhere for TLS: No such file");
    }
}
