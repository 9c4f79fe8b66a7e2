//! Creates and checks names of objects.

use sha2::{Digest, Sha256};

/// The maximum length of a child's name.
const LONGEST: usize = 63;
/// The number of hexadecimal digits that distinguish children.
const DIGITS: usize = 12;

/// Lowercase hexadecimal digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).flatten().collect()
}

/// Lowercase hexadecimal SHA-256 of the concatenated parts.
pub fn sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hex(&hash.finalize())
}

/// The name of a child. It depends only on parent and child and is at most 63 bytes long.
pub fn child(prefix: &str, parent_uid: &str, child: &str) -> String {
    let hash = sha256([parent_uid.as_bytes(), child.as_bytes()]);
    let suffix = &hash[..DIGITS];
    let dash = if prefix.is_empty() || prefix.ends_with('-') { "" } else { "-" };
    let whole = format!("{prefix}{dash}{suffix}");
    if whole.len() <= LONGEST {
        return whole;
    }
    let room = LONGEST - DIGITS;
    // Names are ASCII. A name that is not is cut at a character boundary and refused later.
    let cut = |at: usize| {
        let mut at = at;
        while !prefix.is_char_boundary(at) {
            at -= 1;
        }
        &prefix[..at]
    };
    if prefix.as_bytes().get(room - 1) == Some(&b'-') {
        format!("{}{suffix}", cut(room))
    } else {
        format!("{}-{suffix}", cut(room - 1))
    }
}

/// The number of letters that an API server appends to the prefix of a generated name.
pub const SUFFIX: usize = 5;
/// The length to which an API server cuts the prefix.
const LONGEST_PREFIX: usize = 58;
/// The letters of generated names: without vowels and without letters that look alike.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The name that an API server generates from a prefix, with one letter for each random number.
pub fn generated(prefix: &str, random: [u8; SUFFIX]) -> String {
    let letters = random.map(|number| char::from(LETTERS[usize::from(number) % LETTERS.len()]));
    prefix.chars().take(LONGEST_PREFIX).chain(letters).collect()
}

/// Derives random numbers for [`generated`] from a single number. Consecutive numbers give
/// different names.
pub fn spread(mut number: u64) -> [u8; SUFFIX] {
    [(); SUFFIX].map(|()| {
        let digit = number % LETTERS.len() as u64;
        number /= LETTERS.len() as u64;
        digit as u8
    })
}

/// Whether a name is an RFC 1123 subdomain.
pub fn is_subdomain(name: &str) -> bool {
    let part = |part: &str| {
        let bytes = part.as_bytes();
        let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        bytes.first().is_some_and(inner)
            && bytes.last().is_some_and(inner)
            && bytes.iter().all(|b| inner(b) || *b == b'-')
    };
    !name.is_empty() && name.len() <= 253 && name.split('.').all(part)
}

/// Kinds whose names may contain colons.
const COLON_KINDS: [&str; 4] = ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];

/// Whether an object of this kind may have this name.
pub fn is_valid_for(name: &str, group: &str, kind: &str) -> bool {
    if group == "rbac.authorization.k8s.io" && COLON_KINDS.contains(&kind) {
        return is_subdomain(&name.replace(':', ""));
    }
    is_subdomain(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "75e4a668-035f-4ce8-8c45-f4d3ac850155";

    #[test]
    fn children_are_named_as_the_table_says() {
        // NM-3
        let long = "very-long-parent-name-".repeat(3);
        let unhyphened = "very-long-parent-name-without-ending-hyphen".repeat(2);
        let a50 = "a".repeat(50);
        let compacted = "test-resource-with-a-super-duper-really-long-name-to-test-compaction";
        for (prefix, uid, name, want) in [
            ("cool-resource-", UID, "database", "cool-resource-38ce86992a27"),
            ("resource", UID, "database", "resource-38ce86992a27"),
            ("", UID, "database", "38ce86992a27"),
            (
                &long,
                UID,
                "database",
                "very-long-parent-name-very-long-parent-name-very-l-38ce86992a27",
            ),
            (
                &unhyphened,
                UID,
                "database",
                "very-long-parent-name-without-ending-hyphenvery-lo-38ce86992a27",
            ),
            ("parent-", "uid-123", "database", "parent-5f968d238736"),
            ("parent-", "uid-456", "database", "parent-bd4f105d0576"),
            ("parent-", UID, "storage", "parent-abcd22a110fe"),
            ("parent-xr-", UID, compacted, "parent-xr-e5ac98dc40a2"),
            (&format!("{a50}-"), "u", "n", &format!("{a50}-68bca10eea2b")),
            (&format!("{a50}a"), "u", "n", &format!("{a50}-68bca10eea2b")),
        ] {
            assert_eq!(child(prefix, uid, name), want, "{prefix} {uid} {name}");
        }
    }

    #[test]
    fn generated_names_end_in_letters_of_the_server() {
        assert_eq!(generated("a-", [0, 1, 26, 27, 255]), "a-bc9bq");
        assert_eq!(generated("", spread(0)), "bbbbb");
        assert_eq!(generated("", spread(1 + 27 * 26)), "c9bbb");
        assert_eq!(generated("", spread(27_u64.pow(5) - 1)), "99999");
        let long = "x".repeat(60);
        assert_eq!(generated(&long, [0; SUFFIX]), format!("{}bbbbb", &long[..58]));
    }

    #[test]
    fn names_are_subdomains() {
        // FC-15, T-51
        for good in ["a", "a.b", "a-b.c0", &"a".repeat(253)] {
            assert!(is_subdomain(good), "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a-", "a..b", ".a", "a.", "a:b", "é", &"a".repeat(254)] {
            assert!(!is_subdomain(bad), "{bad}");
        }
    }

    #[test]
    fn only_rbac_kinds_may_hold_colons() {
        // FC-15, T-51
        assert!(is_valid_for(
            "system:controller:admin",
            "rbac.authorization.k8s.io",
            "ClusterRole"
        ));
        assert!(!is_valid_for("a:b", "apps", "Deployment"));
        assert!(!is_valid_for(":", "rbac.authorization.k8s.io", "Role"));
    }
}
