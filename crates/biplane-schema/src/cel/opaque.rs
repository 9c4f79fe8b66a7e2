//! Values of the types that Kubernetes adds to the language.

mod formats;
mod net;
mod quantity;
mod semver;
mod url;

use std::cmp::Ordering;

pub(super) use formats::NamedFormat;
pub(super) use net::{Cidr, Ip};
pub(super) use quantity::Quantity;
pub(super) use semver::Semver;
pub(super) use url::Url;

/// A value of a type that the language itself does not know.
#[derive(Clone, Debug)]
pub enum Opaque {
    /// A URL.
    Url(Url),
    /// A quantity of resources.
    Quantity(Quantity),
    /// An IP address.
    Ip(Ip),
    /// An IP network.
    Cidr(Cidr),
    /// A semantic version.
    Semver(Semver),
    /// A format of strings with a name.
    Format(&'static NamedFormat),
}

impl Opaque {
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Url(_) => "kubernetes.URL",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
        }
    }

    /// The size that calls are charged for. Most types have none.
    pub(super) fn size(&self) -> Option<usize> {
        match self {
            Self::Ip(ip) => Some(ip.size()),
            Self::Cidr(cidr) => Some(cidr.size()),
            _ => None,
        }
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Url(a), Self::Url(b)) => a == b,
            (Self::Quantity(a), Self::Quantity(b)) => a == b,
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a), Self::Cidr(b)) => a == b,
            (Self::Semver(a), Self::Semver(b)) => a.order(b) == Ordering::Equal,
            (Self::Format(a), Self::Format(b)) => a.name == b.name,
            _ => false,
        }
    }
}
