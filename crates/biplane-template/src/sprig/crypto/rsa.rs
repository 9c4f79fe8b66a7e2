//! RSA keys and signatures.

use crypto_bigint::BoxedUint;
use crypto_primes::{Flavor, random_prime};
use num_bigint::BigUint;
use sha2::{Digest as _, Sha256};

use super::Randomness;
use super::der::{self, Reader};
use crate::func::Host;

const EXPONENT: u32 = 65_537;

/// A private key of two primes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RsaKey {
    modulus: BigUint,
    exponent: BigUint,
    secret: BigUint,
    primes: [BigUint; 2],
    /// The secret exponent for each prime.
    exponents: [BigUint; 2],
    coefficient: BigUint,
}

/// A random prime with its highest bit set.
pub(super) fn prime(host: &dyn Host, bits: u32) -> BigUint {
    let prime: BoxedUint = random_prime(&mut Randomness(host), Flavor::Any, bits);
    BigUint::from_bytes_be(&prime.to_be_bytes())
}

impl RsaKey {
    /// A new key. Its modulus has exactly so many bits.
    pub(super) fn generate(host: &dyn Host, bits: u32) -> Self {
        loop {
            let (p, q) = (prime(host, bits / 2), prime(host, bits / 2));
            let modulus = &p * &q;
            if p == q || modulus.bits() != u64::from(bits) {
                continue;
            }
            let exponent = BigUint::from(EXPONENT);
            let one = BigUint::from(1_u8);
            let order = (&p - &one) * (&q - &one);
            if let Some(secret) = exponent.modinv(&order)
                && let Some(key) = Self::new(modulus, exponent, secret, [p, q])
            {
                return key;
            }
        }
    }

    fn new(
        modulus: BigUint,
        exponent: BigUint,
        secret: BigUint,
        primes: [BigUint; 2],
    ) -> Option<Self> {
        let [p, q] = &primes;
        let one = BigUint::from(1_u8);
        if *p <= one || *q <= one || p * q != modulus {
            return None;
        }
        let exponents = [&secret % (p - &one), &secret % (q - &one)];
        let coefficient = q.modinv(p)?;
        Some(Self { modulus, exponent, secret, primes, exponents, coefficient })
    }

    /// Reads a PKCS #1 private key.
    pub(super) fn from_der(bytes: &[u8]) -> Option<Self> {
        let mut fields = Reader::new(bytes).enter(der::SEQUENCE)?;
        let mut number = || fields.unsigned().map(BigUint::from_bytes_be);
        let _version = number()?;
        let (modulus, exponent, secret) = (number()?, number()?, number()?);
        let primes = [number()?, number()?];
        Self::new(modulus, exponent, secret, primes)
    }

    /// The PKCS #1 private key.
    pub(super) fn to_der(&self) -> Vec<u8> {
        let [p, q] = &self.primes;
        let [exponent_p, exponent_q] = &self.exponents;
        let numbers = [
            &BigUint::default(),
            &self.modulus,
            &self.exponent,
            &self.secret,
            p,
            q,
            exponent_p,
            exponent_q,
            &self.coefficient,
        ];
        der::sequence(&numbers.map(|number| der::integer(&number.to_bytes_be())))
    }

    /// The PKCS #1 public key.
    pub(super) fn public_der(&self) -> Vec<u8> {
        let numbers = [&self.modulus, &self.exponent];
        der::sequence(&numbers.map(|number| der::integer(&number.to_bytes_be())))
    }

    /// A PKCS #1 signature of the SHA-256 hash of a message. `None` if the key is too short for it.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        /// The algorithm of the hash, before the hash itself.
        const SHA256: &[u8] = &[
            0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
            0x01, 0x05, 0x00, 0x04, 0x20,
        ];
        let size = usize::try_from(self.modulus.bits().div_ceil(8)).ok()?;
        let hash = Sha256::digest(message);
        let padding = size.checked_sub(3 + SHA256.len() + hash.len()).filter(|n| *n >= 8)?;
        let padded = [&[0, 1], vec![0xff; padding].as_slice(), &[0], SHA256, &hash].concat();
        let number = BigUint::from_bytes_be(&padded).modpow(&self.secret, &self.modulus);
        let bytes = number.to_bytes_be();
        Some([vec![0; size - bytes.len()], bytes].concat())
    }
}
