//! Questions as paths of `/api/v1`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::super::archive::{ChangeFilter, Error, RunFilter, WarningFilter};
use super::super::record::Outcome;
use super::{LIMIT, Named, Question};

/// Where questions are asked.
const PREFIX: &str = "/api/v1/";

/// What needs no escape in a value.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':').remove(b'/');

type Pairs = Vec<(&'static str, String)>;

impl Question {
    /// The path and query.
    pub fn to_uri(&self) -> String {
        let (name, pairs) = self.pairs();
        let mut uri = format!("{PREFIX}{name}");
        for (at, (key, value)) in pairs.iter().enumerate() {
            let sign = if at == 0 { '?' } else { '&' };
            uri.push(sign);
            uri.push_str(key);
            uri.push('=');
            uri.extend(utf8_percent_encode(value, ESCAPED));
        }
        uri
    }

    fn pairs(&self) -> (&'static str, Pairs) {
        match self {
            Self::Runs { filter, limit, after } => {
                let mut pairs = of_runs(filter);
                pairs.push(("limit", limit.to_string()));
                pairs.extend(after.iter().map(|after| ("continue", after.clone())));
                ("runs", pairs)
            }
            Self::Run(named) => ("run", of_named("address", named)),
            Self::Steps(named) => ("steps", of_named("address", named)),
            Self::Blame(named) => ("blame", of_named("address", named)),
            Self::Diff { before, after, observed } => {
                let mut pairs = of_named("before", before);
                pairs.extend(after.iter().map(|after| ("after", after.clone())));
                pairs.extend(observed.then(|| ("observed", "true".to_owned())));
                ("diff", pairs)
            }
            Self::Compare { before, after } => {
                let mut pairs = of_named("before", before);
                pairs.extend(after.iter().map(|after| ("after", after.clone())));
                ("compare", pairs)
            }
            Self::Changes { filter, limit, after } => {
                let mut pairs = of_changes(filter);
                pairs.push(("limit", limit.to_string()));
                pairs.extend(after.iter().map(|after| ("continue", after.clone())));
                ("changes", pairs)
            }
            Self::Why { verb, of, field } => {
                let mut pairs = vec![("verb", verb.name().to_owned())];
                pairs.extend(of_named("address", of));
                pairs.extend(field.iter().map(|field| ("field", field.clone())));
                ("why", pairs)
            }
            Self::At { of, at } => {
                let mut pairs = of_named("address", of);
                pairs.push(("at", at.to_string()));
                ("at", pairs)
            }
            Self::DiffAt { of, from, to, observed } => {
                let mut pairs = of_named("address", of);
                pairs.extend([from, to].map(|at| ("at", at.to_string())));
                pairs.extend(observed.then(|| ("observed", "true".to_owned())));
                ("diff", pairs)
            }
            Self::Warnings { filter, limit, after } => {
                let mut pairs = of_warnings(filter);
                pairs.push(("limit", limit.to_string()));
                pairs.extend(after.iter().map(|after| ("continue", after.clone())));
                ("warnings", pairs)
            }
            Self::Warning(id) => ("warning", vec![("id", id.clone())]),
            Self::Change(id) => ("change", vec![("id", id.clone())]),
            Self::Verify => ("verify", Vec::new()),
        }
    }

    /// Reads a path and query. `None` if the path is not of the API.
    pub fn from_uri(uri: &str) -> Option<Result<Self, Error>> {
        let rest = uri.strip_prefix(PREFIX)?;
        let (name, query) = rest.split_once('?').unwrap_or((rest, ""));
        let known = [
            "runs", "run", "steps", "blame", "diff", "compare", "changes", "change", "verify",
            "why", "at", "warnings", "warning",
        ];
        known.contains(&name).then(|| Query::read(query).and_then(|query| question(name, query)))
    }
}

fn question(name: &str, mut query: Query) -> Result<Question, Error> {
    let found = match name {
        "runs" => Question::Runs {
            filter: runs(&mut query)?,
            limit: query.limit()?,
            after: query.take("continue"),
        },
        "run" => Question::Run(query.named("address")?),
        "steps" => Question::Steps(query.named("address")?),
        "blame" => Question::Blame(query.named("address")?),
        "diff" if query.0.iter().any(|(key, _)| key == "at") => Question::DiffAt {
            of: query.named("address")?,
            from: query.needed_time("at")?,
            to: query.needed_time("at")?,
            observed: query.flag("observed")?,
        },
        "why" => Question::Why {
            verb: query.needed("verb")?.parse().map_err(Error::Usage)?,
            of: query.named("address")?,
            field: query.take("field"),
        },
        "at" => Question::At { of: query.named("address")?, at: query.needed_time("at")? },
        "warnings" => Question::Warnings {
            filter: warnings(&mut query)?,
            limit: query.limit()?,
            after: query.take("continue"),
        },
        "warning" => Question::Warning(query.needed("id")?),
        "diff" => Question::Diff {
            before: query.named("before")?,
            after: query.take("after"),
            observed: query.flag("observed")?,
        },
        "compare" => {
            Question::Compare { before: query.named("before")?, after: query.take("after") }
        }
        "changes" => Question::Changes {
            filter: changes(&mut query)?,
            limit: query.limit()?,
            after: query.take("continue"),
        },
        "change" => Question::Change(query.needed("id")?),
        _ => Question::Verify,
    };
    match query.0.first() {
        Some((key, _)) => Err(Error::Usage(format!("unknown parameter {key:?} of {name}"))),
        None => Ok(found),
    }
}

fn of_named(key: &'static str, named: &Named) -> Pairs {
    let namespace = named.namespace.iter().map(|namespace| ("namespace", namespace.clone()));
    std::iter::once((key, named.address.clone())).chain(namespace).collect()
}

fn of_runs(filter: &RunFilter) -> Pairs {
    let mut pairs = Pairs::new();
    let mut add = |key, value: &Option<String>| {
        pairs.extend(value.iter().map(|value| (key, value.clone())));
    };
    add("kind", &filter.kind);
    add("name", &filter.name);
    add("namespace", &filter.namespace);
    add("composition", &filter.composition);
    add("function", &filter.function);
    add("since", &filter.since.map(|time| time.to_string()));
    add("until", &filter.until.map(|time| time.to_string()));
    pairs.extend(filter.outcomes.iter().map(|outcome| ("outcome", outcome.name().to_owned())));
    pairs.extend(filter.labels.iter().map(|(key, value)| ("label", format!("{key}={value}"))));
    pairs.extend(filter.changed.then(|| ("changed", "true".to_owned())));
    pairs
}

fn runs(query: &mut Query) -> Result<RunFilter, Error> {
    let outcome = |name: String| {
        let wrong = || Error::Usage(format!("{name:?} is no outcome"));
        Outcome::of_name(&name).ok_or_else(wrong)
    };
    let label = |text: String| match text.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Error::Usage(format!("expected a label such as key=value but got {text:?}"))),
    };
    Ok(RunFilter {
        kind: query.take("kind"),
        name: query.take("name"),
        namespace: query.take("namespace"),
        composition: query.take("composition"),
        function: query.take("function"),
        outcomes: query.all("outcome").into_iter().map(outcome).collect::<Result<_, _>>()?,
        labels: query.all("label").into_iter().map(label).collect::<Result<_, _>>()?,
        since: query.time("since")?,
        until: query.time("until")?,
        changed: query.flag("changed")?,
    })
}

fn of_changes(filter: &ChangeFilter) -> Pairs {
    let mut pairs = Pairs::new();
    let mut add = |key, value: &Option<String>| {
        pairs.extend(value.iter().map(|value| (key, value.clone())));
    };
    add("kind", &filter.kind);
    add("name", &filter.name);
    add("namespace", &filter.namespace);
    add("provider", &filter.provider);
    add("operation", &filter.operation);
    add("cause", &filter.cause);
    add("since", &filter.since.map(|time| time.to_string()));
    add("until", &filter.until.map(|time| time.to_string()));
    add("newerThan", &filter.newer_than.map(|key| key.to_string()));
    pairs.extend(filter.failed.then(|| ("failed", "true".to_owned())));
    pairs
}

fn of_warnings(filter: &WarningFilter) -> Pairs {
    let mut pairs = Pairs::new();
    let mut add = |key, value: &Option<String>| {
        pairs.extend(value.iter().map(|value| (key, value.clone())));
    };
    add("found", &filter.found);
    add("kind", &filter.kind);
    add("name", &filter.name);
    add("namespace", &filter.namespace);
    pairs.extend(filter.open.then(|| ("open", "true".to_owned())));
    pairs
}

fn warnings(query: &mut Query) -> Result<WarningFilter, Error> {
    Ok(WarningFilter {
        found: query.take("found"),
        kind: query.take("kind"),
        name: query.take("name"),
        namespace: query.take("namespace"),
        open: query.flag("open")?,
    })
}

fn changes(query: &mut Query) -> Result<ChangeFilter, Error> {
    let newer_than = query.take("newerThan").map(|text| {
        text.parse().map_err(|_| Error::Usage(format!("{text:?} is no id of a change")))
    });
    Ok(ChangeFilter {
        kind: query.take("kind"),
        name: query.take("name"),
        namespace: query.take("namespace"),
        provider: query.take("provider"),
        operation: query.take("operation"),
        cause: query.take("cause"),
        since: query.time("since")?,
        until: query.time("until")?,
        newer_than: newer_than.transpose()?,
        failed: query.flag("failed")?,
    })
}

/// The parameters that have not been read yet.
struct Query(Vec<(String, String)>);

impl Query {
    fn read(text: &str) -> Result<Self, Error> {
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            let wrong = |_| Error::Usage(format!("{text:?} is not UTF-8"));
            percent_decode_str(&text).decode_utf8().map(Into::into).map_err(wrong)
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(key)?, decoded(value)?))
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }

    fn take(&mut self, key: &str) -> Option<String> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(at).1)
    }

    fn all(&mut self, key: &str) -> Vec<String> {
        std::iter::from_fn(|| self.take(key)).collect()
    }

    fn needed(&mut self, key: &str) -> Result<String, Error> {
        self.take(key).ok_or_else(|| Error::Usage(format!("the parameter {key} is missing")))
    }

    fn named(&mut self, key: &str) -> Result<Named, Error> {
        Ok(Named { address: self.needed(key)?, namespace: self.take("namespace") })
    }

    fn flag(&mut self, key: &str) -> Result<bool, Error> {
        match self.take(key).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Error::Usage(format!("{key} is true or false, not {other:?}"))),
        }
    }

    fn time(&mut self, key: &str) -> Result<Option<jiff::Timestamp>, Error> {
        let wrong = |text: &str| Error::Usage(format!("{key}: {text:?} is no time in RFC 3339"));
        self.take(key).map(|text| text.parse().map_err(|_| wrong(&text))).transpose()
    }

    fn needed_time(&mut self, key: &str) -> Result<jiff::Timestamp, Error> {
        let missing = || Error::Usage(format!("the parameter {key} is missing"));
        self.time(key)?.ok_or_else(missing)
    }

    fn limit(&mut self) -> Result<usize, Error> {
        match self.take("limit") {
            None => Ok(LIMIT),
            Some(text) => {
                text.parse().map_err(|_| Error::Usage(format!("limit: {text:?} is no number")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::answer::Verb;

    #[test]
    fn questions_are_read_as_they_are_written() {
        let named = |address: &str| Named {
            address: address.to_owned(),
            namespace: Some("team a&b".to_owned()),
        };
        let filter = RunFilter {
            kind: Some("Store".to_owned()),
            outcomes: vec![Outcome::Fatal, Outcome::Error],
            labels: vec![("team".to_owned(), "a=b".to_owned())],
            since: Some("2026-01-15T14:00:00.5Z".parse().unwrap()),
            changed: true,
            ..RunFilter::default()
        };
        let time = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
        let warnings = WarningFilter {
            found: Some("flapping".to_owned()),
            name: Some("north".to_owned()),
            open: true,
            ..WarningFilter::default()
        };
        let changes = ChangeFilter {
            provider: Some("provider-sql:v1".to_owned()),
            failed: true,
            newer_than: Some(7),
            ..ChangeFilter::default()
        };
        for question in [
            Question::Runs { filter, limit: 3, after: Some("5.6".to_owned()) },
            Question::Run(named("Store/north@{1}")),
            Question::Steps(named("9822d93d/1.2")),
            Question::Blame(named("9822d93d:ä b")),
            Question::Diff { before: named("a1"), after: Some("b2+%".to_owned()), observed: true },
            Question::Compare { before: named("a1"), after: None },
            Question::Changes { filter: changes, limit: 9, after: None },
            Question::Change("12".to_owned()),
            Question::Verify,
            Question::Why {
                verb: Verb::NotReady,
                of: named("Bucket/b"),
                field: Some("spec.rules[name=a].x".to_owned()),
            },
            Question::At { of: named("Store/north"), at: time("2026-01-15T14:00:00.5Z") },
            Question::DiffAt {
                of: named("Store/north"),
                from: time("2026-01-15T14:00:00Z"),
                to: time("2026-01-16T14:00:00Z"),
                observed: true,
            },
            Question::Warnings { filter: warnings, limit: 7, after: Some("1.2".to_owned()) },
            Question::Warning("3".to_owned()),
        ] {
            let uri = question.to_uri();
            assert_eq!(Question::from_uri(&uri).unwrap().unwrap(), question, "{uri}");
        }
        let named = Named { address: "Store/north@{1}".to_owned(), namespace: None };
        assert_eq!(Question::Run(named).to_uri(), "/api/v1/run?address=Store/north%40%7B1%7D");
    }

    #[test]
    fn questions_that_cannot_be_answered_are_refused() {
        let error = |uri: &str| Question::from_uri(uri).unwrap().unwrap_err().to_string();
        assert_eq!(error("/api/v1/run"), "the parameter address is missing");
        assert_eq!(error("/api/v1/runs?kinds=x"), "unknown parameter \"kinds\" of runs");
        assert_eq!(error("/api/v1/runs?outcome=bad"), "\"bad\" is no outcome");
        assert_eq!(error("/api/v1/runs?limit=many"), "limit: \"many\" is no number");
        assert_eq!(error("/api/v1/runs?changed=1"), "changed is true or false, not \"1\"");
        assert_eq!(error("/api/v1/at?address=a"), "the parameter at is missing");
        assert_eq!(
            error("/api/v1/diff?address=a&at=2026-01-15T14:00:00Z"),
            "the parameter at is missing"
        );
        assert_eq!(
            error("/api/v1/why?verb=gone&address=a"),
            "expected one of deleted, created, changed, not-ready, failed, slow but got \"gone\""
        );
        assert!(Question::from_uri("/api/v1/other").is_none());
        assert!(Question::from_uri("/runs").is_none());
    }
}
