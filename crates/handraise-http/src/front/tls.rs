//! TLS, from two PEM files.

use std::{path::Path, sync::Arc};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio_rustls::TlsAcceptor;

use super::settings::{FrontError, TlsFiles};

/// What turns connections into encrypted ones.
///
/// # Errors
/// When a file cannot be read, or holds nothing that fits.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, FrontError> {
    let failed = |path: &Path, problem: &dyn std::fmt::Display| FrontError::Tls {
        path: path.to_owned(),
        problem: problem.to_string(),
    };
    let certificates = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(&files.certificate, &error))?;
    if certificates.is_empty() {
        return Err(failed(&files.certificate, &"it holds no certificate"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| failed(&files.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| failed(&files.key, &error))?;
    let mut config = config;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
