//! Formats of strings that have a name in expressions.

use std::sync::LazyLock;

use regex::Regex;

use super::url::Url;

/// A format with a name.
#[derive(Debug)]
pub struct NamedFormat {
    /// The name in expressions.
    pub(in crate::cel) name: &'static str,
    /// What a check costs per tenth of a character.
    pub(in crate::cel) cost: u64,
}

const FORMATS: [NamedFormat; 13] = [
    NamedFormat { name: "dns1123Label", cost: 8 },
    NamedFormat { name: "dns1123Subdomain", cost: 15 },
    NamedFormat { name: "dns1035Label", cost: 8 },
    NamedFormat { name: "qualifiedName", cost: 15 },
    NamedFormat { name: "dns1123LabelPrefix", cost: 8 },
    NamedFormat { name: "dns1123SubdomainPrefix", cost: 15 },
    NamedFormat { name: "dns1035LabelPrefix", cost: 8 },
    NamedFormat { name: "labelValue", cost: 10 },
    NamedFormat { name: "uri", cost: 276 },
    NamedFormat { name: "uuid", cost: 18 },
    NamedFormat { name: "byte", cost: 21 },
    NamedFormat { name: "date", cost: 18 },
    NamedFormat { name: "datetime", cost: 18 },
];

static ALL: &[NamedFormat] = &FORMATS;

const LABEL_FORM: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FORM: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const OLD_LABEL_FORM: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const NAME_FORM: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE_FORM: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

static LABEL: LazyLock<Option<Regex>> = LazyLock::new(|| whole(LABEL_FORM));
static SUBDOMAIN: LazyLock<Option<Regex>> = LazyLock::new(|| whole(SUBDOMAIN_FORM));
static OLD_LABEL: LazyLock<Option<Regex>> = LazyLock::new(|| whole(OLD_LABEL_FORM));
static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| whole(NAME_FORM));
static VALUE: LazyLock<Option<Regex>> = LazyLock::new(|| whole(VALUE_FORM));

fn whole(form: &str) -> Option<Regex> {
    Regex::new(&format!("^(?:{form})$")).ok()
}

fn matches(regex: &LazyLock<Option<Regex>>, text: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

impl NamedFormat {
    pub(in crate::cel) fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|format| format.name == name)
    }

    /// What is wrong with a string. Nothing if it has the format.
    pub(in crate::cel) fn problems(&self, text: &str) -> Vec<String> {
        // A prefix may end with a dash, because a suffix follows.
        let prefix = |text: &str| match text.strip_suffix('-') {
            Some(start) if !start.is_empty() => {
                let mut chars = start.chars();
                chars.next_back();
                format!("{}a", chars.as_str())
            }
            _ => text.to_owned(),
        };
        let structural = |name: &str, problem: &str| {
            if crate::structural::has_format(name, text) {
                Vec::new()
            } else {
                vec![problem.to_owned()]
            }
        };
        match self.name {
            "dns1123Label" => label(text),
            "dns1123LabelPrefix" => label(&prefix(text)),
            "dns1123Subdomain" => subdomain(text),
            "dns1123SubdomainPrefix" => subdomain(&prefix(text)),
            "dns1035Label" => old_label(text),
            "dns1035LabelPrefix" => old_label(&prefix(text)),
            "qualifiedName" => qualified_name(text),
            "labelValue" => label_value(text),
            "uri" => Url::parse(text).err().into_iter().collect(),
            "uuid" => structural("uuid", "does not match the UUID format"),
            "byte" => structural("byte", "invalid base64"),
            "date" => structural("date", "invalid date"),
            _ => structural("date-time", "invalid datetime"),
        }
    }
}

fn too_long(most: usize, text: &str, unit: &str) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} {unit}"))
}

fn label(text: &str) -> Vec<String> {
    let mut problems: Vec<String> = too_long(63, text, "characters").into_iter().collect();
    if !matches(&LABEL, text) {
        problems.push(format!(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
             and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
             regex used for validation is '{LABEL_FORM}')"
        ));
    }
    problems
}

fn subdomain(text: &str) -> Vec<String> {
    let mut problems: Vec<String> = too_long(253, text, "characters").into_iter().collect();
    if !matches(&SUBDOMAIN, text) {
        problems.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is '{SUBDOMAIN_FORM}')"
        ));
    }
    problems
}

fn old_label(text: &str) -> Vec<String> {
    let mut problems: Vec<String> = too_long(63, text, "characters").into_iter().collect();
    if !matches(&OLD_LABEL, text) {
        problems.push(format!(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name', \
              or 'abc-123', regex used for validation is '{OLD_LABEL_FORM}')"
        ));
    }
    problems
}

fn qualified_name(text: &str) -> Vec<String> {
    let rule = format!(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
         validation is '{NAME_FORM}')"
    );
    let parts: Vec<&str> = text.split('/').collect();
    let (prefix, name) = match parts.as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => {
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    let mut problems = Vec::new();
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            problems
                .extend(subdomain(prefix).into_iter().map(|text| format!("prefix part {text}")));
        }
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if let Some(text) = too_long(63, name, "bytes") {
        problems.push(format!("name part {text}"));
    }
    if !matches(&NAME, name) {
        problems.push(format!("name part {rule}"));
    }
    problems
}

fn label_value(text: &str) -> Vec<String> {
    let mut problems: Vec<String> = too_long(63, text, "bytes").into_iter().collect();
    if !matches(&VALUE, text) {
        problems.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
             or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
             'my_value',  or '12345', regex used for validation is '{VALUE_FORM}')"
        ));
    }
    problems
}
