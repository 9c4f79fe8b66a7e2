//! Random numbers, strings and identifiers. The caller provides the randomness.

use super::args::{int, made, text};
use crate::func::{Call, Failure, Func, Host};
use crate::types::Type;
use crate::value::Value;

pub(super) fn functions() -> Vec<Func> {
    const COUNT: &[Type] = &[Type::INT];
    vec![
        Func::new("randAlphaNum", COUNT, Type::String, |call, args| {
            characters(call, args, |c| c.is_ascii_alphanumeric())
        }),
        Func::new("randAlpha", COUNT, Type::String, |call, args| {
            characters(call, args, |c| c.is_ascii_alphabetic())
        }),
        Func::new("randNumeric", COUNT, Type::String, |call, args| {
            characters(call, args, |c| c.is_ascii_digit())
        }),
        Func::new("randAscii", COUNT, Type::String, |call, args| {
            characters(call, args, |c| (b' '..=b'~').contains(&c))
        }),
        Func::new("randBytes", COUNT, Type::String, rand_bytes),
        Func::new("shuffle", &[Type::String], Type::String, shuffle),
        Func::new("uuidv4", &[], Type::String, |call, _| Ok(uuidv4(call.host()).into())),
    ]
}

/// A number below a limit, all with the same probability.
pub(super) fn below(host: &dyn Host, limit: u64) -> u64 {
    // Numbers above the last whole multiple of the limit would favour small results.
    let excess = (u64::MAX % limit + 1) % limit;
    loop {
        let mut buffer = [0; 8];
        host.random(&mut buffer);
        let number = u64::from_be_bytes(buffer);
        if number <= u64::MAX - excess {
            return number % limit;
        }
    }
}

/// `rand.Intn`.
pub(super) fn intn(host: &dyn Host, limit: i64) -> Result<i64, Failure> {
    match u64::try_from(limit) {
        Ok(limit @ 1..) => Ok(below(host, limit).cast_signed()),
        _ => Err(Failure::new("invalid argument to Intn")),
    }
}

fn characters(
    call: &mut Call<'_>,
    args: &[Value],
    keep: impl Fn(u8) -> bool,
) -> Result<Value, Failure> {
    let Ok(count) = u64::try_from(int(args, 0)) else { return Ok(Value::text("")) };
    call.spend(count)?;
    call.reserve(count)?;
    let choice: Vec<u8> = (0..=127).filter(|byte| keep(*byte)).collect();
    let pick = |_| choice.get(below(call.host(), choice.len() as u64) as usize).copied();
    let out: Vec<u8> = (0..count).filter_map(pick).collect();
    Ok(Value::text(out))
}

fn rand_bytes(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let Ok(count) = u64::try_from(int(args, 0)) else {
        return Err(Failure::new("runtime error: makeslice: len out of range"));
    };
    call.spend(count)?;
    call.reserve(count.saturating_mul(3))?;
    let mut bytes = vec![0; count as usize];
    call.host().random(&mut bytes);
    Ok(Value::text(super::encoding::base64(&bytes)))
}

fn shuffle(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let text = text(args, 0);
    call.spend(text.len() as u64)?;
    let mut runes: Vec<char> = super::text::chars(text).collect();
    for last in (1..runes.len()).rev() {
        let other = below(call.host(), last as u64 + 1) as usize;
        runes.swap(last, other);
    }
    made(call, runes.into_iter().collect::<String>())
}

fn uuidv4(host: &dyn Host) -> String {
    let mut bytes = [0; 16];
    host.random(&mut bytes);
    let number = u128::from_be_bytes(bytes);
    let number = number & !(0xf << 76) | 4 << 76;
    let number = number & !(3 << 62) | 2 << 62;
    let hex = format!("{number:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
    parts.join("-")
}
