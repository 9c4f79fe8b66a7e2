//! Mutations of input.

use crate::random::Random;

/// The maximum length of an input. If the corpus has a longer entry, its length is the maximum.
const LONGEST: usize = 1 << 16;

/// Numbers that are likely to break lengths, counts and depths.
const NUMBERS: &[u64] = &[
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x3fff,
    0x4000,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 53,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// Doubles that are likely to break number rules.
const DOUBLES: &[f64] = &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e300, 5e-324, 1e21];

/// A mutated copy of an entry.
pub(super) fn damage(corpus: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let longest = corpus.iter().map(|c| c.len()).max().unwrap_or(0).max(LONGEST);
    let mut input = random.pick(corpus).unwrap_or_default().to_vec();
    for _ in 0..=random.below(6) {
        step(&mut input, corpus, random);
        input.truncate(longest);
    }
    input
}

fn step(input: &mut Vec<u8>, corpus: &[&[u8]], random: &mut Random) {
    let len = input.len();
    match random.below(10) {
        0 => {
            let bit = 1 << random.below(8);
            if let Some(byte) = input.get_mut(random.below(len)) {
                *byte ^= bit;
            }
        }
        1 => {
            let new = random.number() as u8;
            if let Some(byte) = input.get_mut(random.below(len)) {
                *byte = new;
            }
        }
        2 => input.truncate(random.below(len + 1)),
        3 => drop(input.drain(random.range(len))),
        4 => {
            let part = copy(input, random.range(len));
            insert(input, random.below(len + 1), &part);
        }
        5 => {
            // Repeats a few bytes many times, for nesting and repetition.
            let start = random.below(len + 1);
            let part = copy(input, start..(start + 1 + random.below(16)).min(len));
            let count = 1 + random.below(4096);
            insert(input, start, &part.repeat(count));
        }
        6 => {
            // Joins the start of this entry and the end of another.
            let other = random.pick(corpus).unwrap_or_default();
            input.truncate(random.below(len + 1));
            input.extend(other.iter().skip(random.below(other.len() + 1)));
        }
        7 => {
            let other = random.pick(corpus).unwrap_or_default();
            let part = copy(other, random.range(other.len()));
            insert(input, random.below(len + 1), &part);
        }
        8 => {
            let noise: Vec<u8> = (0..=random.below(16)).map(|_| random.number() as u8).collect();
            insert(input, random.below(len + 1), &noise);
        }
        _ => {
            let bytes = number(random);
            let at = random.below(len + 1);
            if random.below(2) == 0 {
                insert(input, at, &bytes);
            } else {
                input.splice(at..(at + bytes.len()).min(len), bytes);
            }
        }
    }
}

fn number(random: &mut Random) -> Vec<u8> {
    let number = random.pick(NUMBERS).unwrap_or_default();
    match random.below(6) {
        0 => vec![number as u8],
        1 => (number as u32).to_le_bytes().to_vec(),
        2 => number.to_be_bytes().to_vec(),
        3 => number.to_string().into_bytes(),
        4 => random.pick(DOUBLES).unwrap_or_default().to_le_bytes().to_vec(),
        _ => varint(number),
    }
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn copy(bytes: &[u8], range: std::ops::Range<usize>) -> Vec<u8> {
    bytes.get(range).unwrap_or_default().to_vec()
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}
