//! DSA keys, as old as they are: only made and printed.

use crypto_bigint::BoxedUint;
use crypto_primes::{Flavor, is_prime};
use num_bigint::BigUint;

use super::der;
use super::rsa::prime;
use crate::func::Host;

/// The numbers of bits of the two primes.
const BITS: (u32, u32) = (2048, 256);

/// Primes by which a candidate is divided before the long test.
const SMALL: [u32; 24] =
    [3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97];

/// The private key in the form of OpenSSL: version, parameters, public and private number.
pub(super) fn generate(host: &dyn Host) -> Vec<u8> {
    let one = BigUint::from(1_u8);
    let order = prime(host, BITS.1);
    let modulus = modulus(host, &order);
    let power = (&modulus - &one) / &order;
    let mut base = BigUint::from(2_u8);
    let mut generator = base.modpow(&power, &modulus);
    while generator == one {
        base += 1_u8;
        generator = base.modpow(&power, &modulus);
    }
    let mut bytes = vec![0; BITS.1 as usize / 8 + 8];
    host.random(&mut bytes);
    let secret = BigUint::from_bytes_be(&bytes) % (&order - &one) + &one;
    let public = generator.modpow(&secret, &modulus);
    let numbers = [BigUint::default(), modulus, order, generator, public, secret];
    der::sequence(&numbers.map(|number| der::integer(&number.to_bytes_be())))
}

/// A prime that is one more than a multiple of another.
fn modulus(host: &dyn Host, order: &BigUint) -> BigUint {
    let step = order * 2_u8;
    let mut bytes = vec![0; BITS.0 as usize / 8];
    loop {
        host.random(&mut bytes);
        let mut number = BigUint::from_bytes_be(&bytes);
        number.set_bit(u64::from(BITS.0) - 1, true);
        let candidate = &number - &number % &step + 1_u8;
        let divisible = SMALL.iter().any(|small| &candidate % *small == BigUint::default());
        if divisible || candidate.bits() != u64::from(BITS.0) {
            continue;
        }
        let boxed = BoxedUint::from_be_slice(&candidate.to_bytes_be(), BITS.0);
        if boxed.is_ok_and(|boxed| is_prime(Flavor::Any, &boxed)) {
            return candidate;
        }
    }
}
