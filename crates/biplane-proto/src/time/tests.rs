//! Tests of times and durations in protobuf JSON.

use super::*;

fn time(seconds: i64, nanos: i32) -> Timestamp {
    Timestamp { seconds, nanos }
}

fn span(seconds: i64, nanos: i32) -> Duration {
    Duration { seconds, nanos }
}

#[test]
fn times_are_written_in_utc_with_as_many_digits_as_needed() {
    for (seconds, nanos, text) in [
        (0, 0, "1970-01-01T00:00:00Z"),
        (-1, 0, "1969-12-31T23:59:59Z"),
        (-1, 999_999_999, "1969-12-31T23:59:59.999999999Z"),
        (1_768_473_005, 0, "2026-01-15T10:30:05Z"),
        (1_768_473_005, 500_000_000, "2026-01-15T10:30:05.500Z"),
        (1_768_473_005, 1_000, "2026-01-15T10:30:05.000001Z"),
        (1_768_473_005, 1, "2026-01-15T10:30:05.000000001Z"),
        (951_782_400, 0, "2000-02-29T00:00:00Z"),
        (1_709_251_199, 0, "2024-02-29T23:59:59Z"),
        (4_107_542_400, 0, "2100-03-01T00:00:00Z"),
        (*TIMES.start(), 0, "0001-01-01T00:00:00Z"),
        (*TIMES.end(), 999_999_999, "9999-12-31T23:59:59.999999999Z"),
    ] {
        assert_eq!(time(seconds, nanos).to_rfc3339().as_deref(), Some(text));
        assert_eq!(Timestamp::from_rfc3339(text), Some(time(seconds, nanos)));
    }
}

#[test]
fn times_out_of_range_have_no_text() {
    for (seconds, nanos) in [
        (TIMES.start() - 1, 0),
        (TIMES.end() + 1, 0),
        (i64::MIN, 0),
        (i64::MAX, i32::MAX),
        (0, -1),
        (0, SECOND),
    ] {
        assert_eq!(time(seconds, nanos).to_rfc3339(), None);
    }
}

#[test]
fn times_are_read_with_offsets_and_any_number_of_digits() {
    for (text, seconds, nanos) in [
        ("2026-01-15T12:30:05+02:00", 1_768_473_005, 0),
        ("2026-01-15T05:00:05-05:30", 1_768_473_005, 0),
        ("2026-01-15T10:30:05.5Z", 1_768_473_005, 500_000_000),
        ("2026-01-15T10:30:05.1234-00:00", 1_768_473_005, 123_400_000),
    ] {
        assert_eq!(Timestamp::from_rfc3339(text), Some(time(seconds, nanos)), "{text}");
    }
}

#[test]
fn what_is_not_a_time_is_refused() {
    for text in [
        "",
        "2026-01-15",
        "2026-01-15T10:30:05",
        "2026-01-15 10:30:05Z",
        "2026-01-15t10:30:05Z",
        "2026-01-15T10:30:05z",
        "2026-1-15T10:30:05Z",
        "2026-13-15T10:30:05Z",
        "2026-00-15T10:30:05Z",
        "2026-02-29T10:30:05Z",
        "2100-02-29T10:30:05Z",
        "2026-01-32T10:30:05Z",
        "2026-01-15T24:00:00Z",
        "2026-01-15T10:60:05Z",
        "2026-01-15T10:30:60Z",
        "2026-01-15T10:30:05.Z",
        "2026-01-15T10:30:05.1234567890Z",
        "2026-01-15T10:30:05.5x5Z",
        "2026-01-15T10:30:05ZZ",
        "2026-01-15T10:30:05+02",
        "2026-01-15T10:30:05+0200",
        "2026-01-15T10:30:05+02:60",
        "2026-01-15T10:30:05+02:00:00",
        "+026-01-15T10:30:05Z",
        "0000-12-31T23:59:59Z",
        "0001-01-01T00:00:00+01:00",
        "20é6-01-15T10:30:05Z",
    ] {
        assert_eq!(Timestamp::from_rfc3339(text), None, "{text}");
    }
}

#[test]
fn spans_are_written_in_seconds() {
    for (seconds, nanos, text) in [
        (0, 0, "0s"),
        (60, 0, "60s"),
        (-60, 0, "-60s"),
        (1, 500_000_000, "1.500s"),
        (0, -1, "-0.000000001s"),
        (-3, -1_000, "-3.000001s"),
        (LONGEST, 999_999_999, "315576000000.999999999s"),
    ] {
        assert_eq!(span(seconds, nanos).to_text().as_deref(), Some(text));
        assert_eq!(Duration::from_text(text), Some(span(seconds, nanos)));
    }
    for (seconds, nanos) in
        [(1, -1), (-1, 1), (LONGEST + 1, 0), (i64::MIN, 0), (0, i32::MIN), (0, SECOND)]
    {
        assert_eq!(span(seconds, nanos).to_text(), None);
    }
}

#[test]
fn spans_are_read_as_go_reads_them() {
    for (text, seconds, nanos) in
        [("+1s", 1, 0), (".5s", 0, 500_000_000), ("1.s", 1, 0), ("0.0s", 0, 0), ("-0s", 0, 0)]
    {
        assert_eq!(Duration::from_text(text), Some(span(seconds, nanos)), "{text}");
    }
    for text in [
        "",
        "s",
        "1",
        "-s",
        "+s",
        "01s",
        "--1s",
        "+-1s",
        "1.0000000000s",
        "1.-5s",
        "1 s",
        "1e3s",
        "315576000001s",
        "99999999999999999999s",
        "--9223372036854775808s",
    ] {
        assert_eq!(Duration::from_text(text), None, "{text}");
    }
}

#[test]
fn spans_convert_to_those_of_the_standard_library() {
    let std = std::time::Duration::new(60, 5);
    assert_eq!(Duration::from(std), span(60, 5));
    assert_eq!(std::time::Duration::try_from(span(60, 5)), Ok(std));
    assert!(std::time::Duration::try_from(span(-1, 0)).is_err());
    assert!(std::time::Duration::try_from(span(0, -1)).is_err());
    assert!(std::time::Duration::try_from(span(i64::MAX, i32::MAX)).is_ok());
}

proptest::proptest! {
    #[test]
    fn every_time_reads_back(seconds in TIMES, nanos in 0..SECOND) {
        let time = time(seconds, nanos);
        let text = time.to_rfc3339();
        proptest::prop_assert_eq!(text.as_deref().and_then(Timestamp::from_rfc3339), Some(time));
    }
}
