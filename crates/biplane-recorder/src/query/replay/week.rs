//! What became of many requests that a function was given again.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::answer::{RedactedValue, Replay, ReplayGroup, Replays, Skipped};
use super::super::archive::{Asked, Recorded};
use super::junit::{Case, Verdict};
use super::{shape, unrecorded};
use crate::query::sentence;

/// How many steps a group names.
const EXAMPLES: usize = 3;

/// A request that was given again.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Its place among the requests, so that the order in which they end does not matter.
    pub place: usize,
    /// The step, as an address.
    pub address: String,
    /// The owner of the run, in words.
    pub owner: String,
    /// How many recorded calls had this request.
    pub calls: i64,
    /// How the answer differs.
    pub replay: Replay,
    /// What the step required and was not recorded.
    pub lacks: Vec<String>,
    /// How long the call took.
    pub took: Duration,
}

impl Done {
    /// What is known of a request before it is given again.
    pub fn of(place: usize, asked: &Asked, recorded: &Recorded) -> Self {
        let owner = &recorded.head.owner;
        let owner = match owner.namespace.as_str() {
            "" => format!("{}/{}", owner.kind, owner.name),
            namespace => format!("{}/{} in {namespace}", owner.kind, owner.name),
        };
        // A step whose calls were recorded one by one was given all that it was given.
        let is_whole = recorded.is_repeated || recorded.step.iteration > 0;
        Self {
            place,
            address: recorded.address(),
            owner,
            calls: asked.calls,
            lacks: if is_whole { Vec::new() } else { unrecorded(&recorded.step) },
            ..Self::default()
        }
    }
}

/// Gathers what became of requests.
#[derive(Debug, Default)]
pub struct Gathered {
    groups: BTreeMap<Vec<String>, Group>,
    skipped: BTreeMap<String, (usize, usize, String)>,
    redacted: BTreeMap<String, usize>,
    supplied: BTreeMap<String, usize>,
    cases: BTreeMap<usize, Case>,
    requests: usize,
    calls: i64,
    same: usize,
}

#[derive(Debug, Default)]
struct Group {
    calls: i64,
    /// The steps by place.
    members: BTreeMap<usize, String>,
    first: Replay,
}

impl Gathered {
    /// Adds a request.
    pub fn add(&mut self, done: Done) {
        let Done { place, address, owner, calls, replay, lacks, took } = done;
        self.requests += 1;
        self.calls += calls;
        for path in &replay.redacted {
            *self.redacted.entry(path.clone()).or_default() += 1;
        }
        for path in &replay.supplied {
            *self.supplied.entry(path.clone()).or_default() += 1;
        }
        let shape = shape(&replay);
        let verdict = if shape.is_empty() {
            self.same += 1;
            Verdict::Same
        } else if lacks.is_empty() {
            Verdict::Differs { sentence: replay.sentence.clone(), shape: shape.clone() }
        } else {
            let reason = format!("it requires what was not recorded: {}", lacks.join(", "));
            Verdict::Skipped(reason)
        };
        match &verdict {
            Verdict::Same => {}
            Verdict::Skipped(reason) => self.skip_one(place, reason, &address),
            Verdict::Differs { .. } => {
                let group = self.groups.entry(shape).or_default();
                if group.members.first_key_value().is_none_or(|(first, _)| place < *first) {
                    group.first = replay;
                }
                group.members.insert(place, address.clone());
                group.calls += calls;
            }
        }
        self.cases.insert(place, Case { name: address, owner, took, verdict });
    }

    /// Adds a request that could not be given again.
    pub fn skip(&mut self, done: Done, reason: &str) {
        self.requests += 1;
        self.calls += done.calls;
        self.skip_one(done.place, reason, &done.address);
        let verdict = Verdict::Skipped(reason.to_owned());
        let case = Case { name: done.address, owner: done.owner, took: Duration::ZERO, verdict };
        self.cases.insert(done.place, case);
    }

    fn skip_one(&mut self, place: usize, reason: &str, address: &str) {
        let entry = self.skipped.entry(reason.to_owned());
        let (count, first, example) = entry.or_insert((0, usize::MAX, String::new()));
        *count += 1;
        if place < *first {
            (*first, *example) = (place, address.to_owned());
        }
    }

    /// The answer, and each request as a case of a test.
    pub fn finish(self, function: &str, target: &str) -> (Replays, Vec<Case>) {
        let mut groups: Vec<(usize, ReplayGroup)> = Vec::new();
        for (shape, group) in self.groups {
            let first = group.members.keys().next().copied().unwrap_or_default();
            groups.push((
                first,
                ReplayGroup {
                    requests: group.members.len(),
                    calls: group.calls,
                    shape,
                    examples: group.members.into_values().take(EXAMPLES).collect(),
                    first: group.first,
                },
            ));
        }
        groups.sort_by_key(|(first, group)| (std::cmp::Reverse(group.requests), *first));
        let groups: Vec<ReplayGroup> = groups.into_iter().map(|(_, group)| group).collect();
        let skipped: Vec<Skipped> = self
            .skipped
            .into_iter()
            .map(|(reason, (requests, _, example))| Skipped { reason, requests, example })
            .collect();
        let different = groups.iter().map(|group| group.requests).sum();
        let mut answer = Replays {
            function: function.to_owned(),
            target: target.to_owned(),
            sentence: String::new(),
            differs: different > 0,
            requests: self.requests,
            calls: self.calls,
            same: self.same,
            different,
            groups,
            skipped,
            redacted: self
                .redacted
                .into_iter()
                .map(|(path, requests)| RedactedValue { path, requests })
                .collect(),
            supplied: self.supplied.into_keys().collect(),
        };
        answer.sentence = sentence(&answer);
        (answer, self.cases.into_values().collect())
    }
}

fn sentence(answer: &Replays) -> String {
    let requests = |count: usize| sentence::counted(count, "distinct request");
    if answer.requests == 0 {
        return format!("No request to {} was recorded in this time.", answer.function);
    }
    let calls = sentence::counted(usize::try_from(answer.calls).unwrap_or(0), "recorded call");
    let unknown: usize = answer.skipped.iter().map(|skipped| skipped.requests).sum();
    let asked = requests(answer.requests);
    let how = match (answer.different, unknown) {
        (0, 0) => "all are answered as before".to_owned(),
        (0, unknown) => format!("{} answered as before, {unknown} not judged", answer.same),
        (different, unknown) => {
            let ways = sentence::counted(answer.groups.len(), "way");
            let not_judged = match unknown {
                0 => String::new(),
                unknown => format!(", {unknown} not judged"),
            };
            let same = answer.same;
            format!("{same} answered as before, {different} differently in {ways}{not_judged}")
        }
    };
    format!("{asked} of {calls}: {how}.")
}

#[cfg(test)]
mod tests {
    use super::super::super::answer::FieldItem;
    use super::*;

    fn done(place: usize, paths: &[&str]) -> Done {
        let field = |path: &&str| FieldItem { path: (*path).to_owned(), ..FieldItem::default() };
        let fields: Vec<FieldItem> = paths.iter().map(field).collect();
        Done {
            place,
            address: format!("run/{place}"),
            calls: 2,
            replay: Replay { differs: !fields.is_empty(), fields, ..Replay::default() },
            ..Done::default()
        }
    }

    #[test]
    fn differences_are_grouped_whatever_the_order_is_in_which_calls_end() {
        let all = [
            done(0, &[]),
            done(1, &["context.a"]),
            done(2, &["results[0].message"]),
            done(3, &["results[7].message"]),
            Done { lacks: vec!["env".into()], ..done(4, &["context.a"]) },
            Done { lacks: vec!["env".into()], ..done(5, &[]) },
        ];
        let gathered = |order: &[usize]| {
            let mut gathered = Gathered::default();
            for at in order {
                gathered.add(all[*at].clone());
            }
            gathered.finish("f", "here")
        };
        let (answer, cases) = gathered(&[0, 1, 2, 3, 4, 5]);
        let (again, cases_again) = gathered(&[5, 3, 4, 2, 1, 0]);
        assert_eq!(answer, again);
        assert_eq!(cases, cases_again);
        assert_eq!((answer.requests, answer.calls, answer.same, answer.different), (6, 12, 2, 3));
        let groups: Vec<_> = answer
            .groups
            .iter()
            .map(|g| (g.requests, g.shape.join(" "), g.examples.join(" ")))
            .collect();
        assert_eq!(
            groups,
            [
                (2, "~ results[*].message".to_owned(), "run/2 run/3".to_owned()),
                (1, "~ context.a".to_owned(), "run/1".to_owned()),
            ]
        );
        assert_eq!(answer.groups[0].first.fields[0].path, "results[0].message");
        assert_eq!(answer.skipped[0].reason, "it requires what was not recorded: env");
        assert_eq!(
            answer.sentence,
            "6 distinct requests of 12 recorded calls: 2 answered as before, 3 differently in 2 ways, 1 not judged."
        );
    }

    #[test]
    fn nothing_recorded_and_nothing_different_are_told_apart() {
        let (answer, _) = Gathered::default().finish("f", "here");
        assert_eq!(answer.sentence, "No request to f was recorded in this time.");
        let mut gathered = Gathered::default();
        gathered.add(done(0, &[]));
        let (answer, _) = gathered.finish("f", "here");
        assert_eq!(
            answer.sentence,
            "1 distinct request of 2 recorded calls: all are answered as before."
        );
        assert!(!answer.differs);
    }
}
