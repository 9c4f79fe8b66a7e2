//! Certificates for tests.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use tempfile::TempDir;

/// An authority, and the folders of one server and one client that it signed.
pub(crate) struct Certs {
    folder: TempDir,
}

impl Certs {
    /// A server that goes by these names, and a client.
    pub(crate) fn new(names: &[&str]) -> Self {
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        ca.distinguished_name.push(DnType::CommonName, "Crossplane");
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();

        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, names: &[&str], usage| {
            let names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
            let mut params = CertificateParams::new(names).unwrap();
            params.extended_key_usages = vec![usage];
            params.use_authority_key_identifier_extension = true;
            let key = KeyPair::generate().unwrap();
            let certificate = params.signed_by(&key, &ca).unwrap();
            let folder = folder.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("tls.crt"), certificate.pem()).unwrap();
            std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
            std::fs::write(folder.join("ca.crt"), ca.pem()).unwrap();
        };
        write("server", names, ExtendedKeyUsagePurpose::ServerAuth);
        write("client", &["crossplane.crossplane-system"], ExtendedKeyUsagePurpose::ClientAuth);
        Self { folder }
    }

    pub(crate) fn server(&self) -> std::path::PathBuf {
        self.path().join("server")
    }

    pub(crate) fn client(&self) -> std::path::PathBuf {
        self.path().join("client")
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}
