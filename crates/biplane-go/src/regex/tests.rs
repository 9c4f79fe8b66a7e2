//! Tests of patterns against Go's rules.

use super::*;

fn group(pattern: &str, text: &str, group: usize) -> Option<String> {
    let regex = GoRegex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    let found = regex.group(text.as_bytes(), group).unwrap()?;
    Some(String::from_utf8(found.to_vec()).unwrap())
}

#[test]
fn patterns_match_as_in_go() {
    for (pattern, text, at, expected) in [
        ("[0-9]", "my-1-string", 0, Some("1")),
        ("my-([0-9]+)-string", "my-1-string", 1, Some("1")),
        ("my-([0-9]+)-string", "my-1-string", 2, None),
        ("^eu-(.*)-", "us-east-1", 1, None),
        ("(a)?b", "b", 1, Some("")),
        (r"\d+", "٣x", 0, None),
        (r"\w+", "é_a1", 0, Some("_a1")),
        (r"\s", "\u{b}", 0, None),
        (r"\bb\b", "ab b", 0, Some("b")),
        (r"a\Bb", "ab", 0, Some("ab")),
        (r"^b$", "a\nb\nc", 0, None),
        (r"(?m)^b$", "a\nb\nc", 0, Some("b")),
        (r"a$", "a\n", 0, None),
        ("a.c", "a\nc", 0, None),
        ("(?s)a.c", "a\nc", 0, Some("a\nc")),
        ("(?i)straSSe", "STRAsse", 0, Some("STRAsse")),
        ("(?i)k", "\u{212a}", 0, Some("\u{212a}")),
        (r"(?i)\w", "\u{17f}", 0, Some("\u{17f}")),
        ("(?U)a+", "aaa", 0, Some("a")),
        ("(?U)a+?", "aaa", 0, Some("aaa")),
        ("a{", "a{", 0, Some("a{")),
        ("a{,5}", "a{,5}", 0, Some("a{,5}")),
        ("a{x}", "a{x}", 0, Some("a{x}")),
        ("a{2,3}", "aaaa", 0, Some("aaa")),
        ("[a&&b]+", "&&ab", 0, Some("&&ab")),
        ("[[a]+", "[a", 0, Some("[a")),
        ("[a-]+", "-a", 0, Some("-a")),
        ("[]a]+", "]a", 0, Some("]a")),
        ("[^]a]+", "b]", 0, Some("b")),
        (r"[\d~]+", "1~2", 0, Some("1~2")),
        (r"[^\D5]+", "4567", 0, Some("4")),
        ("[[:^alpha:]]+", "a1b", 0, Some("1")),
        (r"\Qa.b\E+", "a.bb", 0, Some("a.bb")),
        (r"\Q.*", ".*", 0, Some(".*")),
        (r"\101\x41\x{41}", "AAA", 0, Some("AAA")),
        (r"\pL+", "1é2", 0, Some("é")),
        (r"\p{Greek}+\P{Greek}", "αβx", 0, Some("αβx")),
        (r"\p{^Greek}", "α", 0, None),
        (r"\p{Letter}\p{nd}", "a1", 0, Some("a1")),
        (r"\p{Cs}", "a", 0, None),
        ("(?P<n>a)(?P<m>b)", "ab", 2, Some("b")),
        ("(?<n>a)", "a", 1, Some("a")),
        ("(?P<1a>x)", "x", 1, Some("x")),
        ("(?P<n>a)(?P<n>b)", "ab", 2, Some("b")),
        ("a|ab", "ab", 0, Some("a")),
        ("(|a)+", "aaa", 0, Some("")),
        ("^*", "x", 0, Some("")),
        ("a(?i)*b", "aaB", 0, Some("aaB")),
        ("(?i:a)b", "AB", 0, None),
        ("(a(?i)b)c", "aBC", 0, None),
        (r"\x{D800}", "a", 0, None),
        (r"[\x{D700}-\x{E000}]", "\u{d7ff}", 0, Some("\u{d7ff}")),
        (r"[^\x00-\x{10FFFF}]", "a", 0, None),
        ("", "abc", 0, Some("")),
        ("#x", "a #x", 0, Some("#x")),
        ("a b", "a b", 0, Some("a b")),
        ("(?)a", "a", 0, Some("a")),
    ] {
        assert_eq!(group(pattern, text, at).as_deref(), expected, "GR-2: {pattern} on {text:?}");
    }
}

#[test]
fn stray_bytes_count_as_characters() {
    let dot = GoRegex::new("a(.)(.)b").unwrap();
    let text = b"a\xff\xc3b";
    assert_eq!(dot.is_match(text), Ok(true));
    assert_eq!(dot.group(text, 1), Ok(Some(&b"\xff"[..])));
    assert_eq!(dot.group(text, 2), Ok(Some(&b"\xc3"[..])));
    assert_eq!(dot.group(text, 0), Ok(Some(&text[..])));
    assert_eq!(GoRegex::new("\u{fffd}b").unwrap().group(text, 0), Ok(Some(&b"\xc3b"[..])));
}

#[test]
fn patterns_are_refused_in_the_words_of_go() {
    for (pattern, expected) in [
        ("[a", "missing closing ]: `[a`"),
        ("a[", "missing closing ]: `[`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("?", "missing argument to repetition operator: `?`"),
        ("(*)", "missing argument to repetition operator: `*`"),
        ("a|+", "missing argument to repetition operator: `+`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a*??", "invalid nested repetition operator: `*??`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        ("(a{100}){11}", "invalid repeat count: `{11}`"),
        ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\xZZ", r"invalid escape sequence: `\xZZ`"),
        (r"a\xZ", r"invalid escape sequence: `\xZ`"),
        (r"a\p", r"invalid character class range: `\p`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"\é", r"invalid escape sequence: `\é`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:nope:]]", "invalid character class range: `[:nope:]`"),
        (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
        (r"\p{Old_Italic}", r"invalid character class range: `\p{Old_Italic}`"),
        (r"\pX", r"invalid character class range: `\pX`"),
        (r"\p{L", r"invalid character class range: `\p{L`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<!a)", "invalid named capture: `(?<!a)`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?-)a", "invalid or unsupported Perl syntax: `(?-)`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("(?P<n-m>a)", "invalid named capture: `(?P<n-m>`"),
        ("(?P<", "invalid or unsupported Perl syntax: `(?P`"),
        (r"a\", "trailing backslash at end of expression: ``"),
        (r"((x{1000}){1}){2}", "invalid repeat count: `{2}`"),
    ] {
        let error = GoRegex::new(pattern).err().unwrap_or_else(|| panic!("{pattern} compiles"));
        assert_eq!(error.to_string(), format!("error parsing regexp: {expected}"), "GR-5");
    }
}

#[test]
fn size_and_depth_are_bounded() {
    let deep = "(".repeat(390) + "a" + &")".repeat(390);
    assert_eq!(GoRegex::new(&deep).unwrap().is_match(b"a"), Ok(true));
    let deeper = "(".repeat(5000) + "a" + &")".repeat(5000);
    let error = GoRegex::new(&deeper).unwrap_err();
    assert_eq!(error.what, "expression nests too deeply");
    let large = format!("({}){{1000}}", "abcd".repeat(1000));
    assert_eq!(GoRegex::new(&large).unwrap_err().what, "expression too large");
}

/// Each of these takes megabytes when it is compiled, or more than there are.
#[test]
fn a_large_pattern_is_refused_before_it_is_compiled() {
    for (pattern, fits) in [
        (r"\pL{1000}".to_owned(), true),
        (r"(\pL\pL){1000}".to_owned(), false),
        (r"\pL".repeat(2_000), false),
        (r"[\pL\pN]{1000}".to_owned(), false),
        ("(?i)[^a]{1000}".to_owned(), true),
        ("a".repeat(100_000), true),
        ("a".repeat(1_000_000), false),
        (r"\PL?".repeat(1_500), false),
    ] {
        let shown: String = pattern.chars().take(20).collect();
        let compiled = GoRegex::new(&pattern);
        assert_eq!(compiled.is_ok(), fits, "{shown}");
        if let Err(error) = compiled {
            assert_eq!(error.what, "expression too large", "{shown}");
        }
    }
}

/// The estimate decides what is refused and what a cache counts, so it must not be below what the
/// engine takes, nor far above it.
#[test]
fn the_size_is_about_what_the_engine_needs() {
    for pattern in [
        "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "[a-z]{1,253}",
        r"\pL{20}",
        r"\PL{20}",
        "(?i)kubernetes{50}",
        ".{200}",
        "[^/]+/[^/]+",
        r"(\d+)\.(\d+)",
        "(a?){300}",
        r"[\x{4e00}-\x{9fff}]{50}",
        "(aa|bb|cc){100}",
        r"[\w.]{300}",
        "é{200}",
        "(?s).{50}",
    ] {
        let size = GoRegex::new(pattern).unwrap().size();
        let text = translate::translate(pattern).unwrap().text;
        let build = |limit| RegexBuilder::new(&text).size_limit(limit).build().is_ok();
        // An empty program has a size, too.
        assert!(build(size + 2_000), "{pattern} takes more than {size}");
        let smallest = (0..40).map(|power| 512_usize << power).find(|limit| build(*limit)).unwrap();
        assert!(size < smallest * 32, "{pattern} takes {smallest}, not {size}");
    }
}

#[test]
fn clones_share_what_was_compiled() {
    let regex = GoRegex::new("a+").unwrap();
    let clone = regex.clone();
    assert_eq!(clone.is_match(b"a"), Ok(true));
    assert!(std::ptr::eq(regex.regex().unwrap(), clone.regex().unwrap()));
}
