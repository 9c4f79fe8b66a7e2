//! Values of flags with units: days and sizes.

use std::time::Duration;

use crate::values;

/// A duration that may have days: `7d`.
pub(super) fn days(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) => Ok(Duration::from_hours(24) * days),
        _ => values::duration(text),
    }
}

/// A number of bytes: `64MiB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("", 0)];
    let read = units.iter().find_map(|(unit, shift)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(1 << shift)
    });
    let wrong = || format!("expected a size such as 64MiB but got {text:?}");
    read.filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_days_are_read() {
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("4194304"), Ok(4_194_304));
        for wrong in ["", "0", "-1", "MiB", "1MB", "99999999TiB", "1.5GiB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(days("7d"), Ok(Duration::from_hours(168)));
        assert_eq!(days("1h30m"), Ok(Duration::from_mins(90)));
        assert!(days("d").is_err() && days("7w").is_err());
    }
}
