//! Creates a CA, and the certificates of a server and of a client.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use tempfile::TempDir;

/// A CA, and the folders of one server and one client whose certificates it signed.
#[derive(Debug)]
pub struct Certs {
    folder: TempDir,
}

impl Certs {
    /// Creates certificates for a server with these names, and for a client.
    pub fn new(names: &[&str]) -> Self {
        let mut ca = CertificateParams::new(Vec::new()).expect("no names are valid names");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        ca.distinguished_name.push(DnType::CommonName, "Crossplane");
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().expect("a key"))
            .expect("an authority");

        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, names: &[&str], usage| {
            let names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
            let mut params = CertificateParams::new(names).expect("valid names");
            params.extended_key_usages = vec![usage];
            params.use_authority_key_identifier_extension = true;
            let key = KeyPair::generate().expect("a key");
            let certificate = params.signed_by(&key, &ca).expect("a certificate");
            let folder = folder.path().join(name);
            std::fs::create_dir(&folder).expect("a folder");
            for (file, text) in [
                ("tls.crt", certificate.pem()),
                ("tls.key", key.serialize_pem()),
                ("ca.crt", ca.pem()),
            ] {
                std::fs::write(folder.join(file), text).expect("a file");
            }
        };
        write("server", names, ExtendedKeyUsagePurpose::ServerAuth);
        write("client", &["crossplane.crossplane-system"], ExtendedKeyUsagePurpose::ClientAuth);
        Self { folder }
    }

    /// The folder with the server's certificate.
    pub fn server(&self) -> PathBuf {
        self.path().join("server")
    }

    /// The folder with the client's certificate.
    pub fn client(&self) -> PathBuf {
        self.path().join("client")
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}
