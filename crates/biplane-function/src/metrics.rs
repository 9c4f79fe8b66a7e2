//! Counters and histograms in Prometheus' text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Upper bounds of the histograms' buckets, in seconds.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// A counter for each combination of label values.
#[derive(Debug)]
pub struct Counter {
    family: Family,
    values: Mutex<BTreeMap<Vec<String>, u64>>,
}

/// A histogram for each combination of label values.
#[derive(Debug)]
pub struct Histogram {
    family: Family,
    values: Mutex<BTreeMap<Vec<String>, Observed>>,
}

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    /// How many fell into each bucket, not counting those of smaller ones.
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(labels: &[&str]) -> Vec<String> {
    labels.iter().map(|&label| label.to_owned()).collect()
}

impl Counter {
    /// A counter without values.
    pub const fn new(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Self {
        Self { family: Family { name, help, labels }, values: Mutex::new(BTreeMap::new()) }
    }

    /// Counts. Counting zero makes the series visible.
    pub fn add(&self, labels: &[&str], n: u64) {
        *lock(&self.values).entry(key(labels)).or_default() += n;
    }

    /// What has been counted.
    pub fn get(&self, labels: &[&str]) -> u64 {
        lock(&self.values).get(&key(labels)).copied().unwrap_or_default()
    }

    /// Appends the text form.
    pub fn write(&self, out: &mut String) {
        self.family.header("counter", out);
        for (values, n) in &*lock(&self.values) {
            let _ = writeln!(out, "{}{} {n}", self.family.name, self.family.labels(values, None));
        }
    }
}

impl Histogram {
    /// A histogram without values.
    pub const fn new(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Self {
        Self { family: Family { name, help, labels }, values: Mutex::new(BTreeMap::new()) }
    }

    /// Notes how long something took.
    pub fn observe(&self, labels: &[&str], took: std::time::Duration) {
        let seconds = took.as_secs_f64();
        let mut values = lock(&self.values);
        let observed = values.entry(key(labels)).or_default();
        observed.count += 1;
        observed.sum += seconds;
        let bucket = BUCKETS.iter().position(|bound| seconds <= *bound);
        if let Some(n) = bucket.and_then(|b| observed.buckets.get_mut(b)) {
            *n += 1;
        }
    }

    /// How many times something has been noted.
    pub fn count(&self, labels: &[&str]) -> u64 {
        lock(&self.values).get(&key(labels)).map_or(0, |observed| observed.count)
    }

    /// Appends the text form.
    pub fn write(&self, out: &mut String) {
        let Family { name, .. } = self.family;
        self.family.header("histogram", out);
        for (values, observed) in &*lock(&self.values) {
            let mut total = 0;
            for (bound, n) in BUCKETS.iter().zip(observed.buckets) {
                total += n;
                let labels = self.family.labels(values, Some(&bound.to_string()));
                let _ = writeln!(out, "{name}_bucket{labels} {total}");
            }
            let labels = self.family.labels(values, Some("+Inf"));
            let _ = writeln!(out, "{name}_bucket{labels} {}", observed.count);
            let labels = self.family.labels(values, None);
            let _ = writeln!(out, "{name}_sum{labels} {}", observed.sum);
            let _ = writeln!(out, "{name}_count{labels} {}", observed.count);
        }
    }
}

impl Family {
    fn header(&self, kind: &str, out: &mut String) {
        let Self { name, help, .. } = self;
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn labels(&self, values: &[String], bound: Option<&str>) -> String {
        let escape = |v: &str| v.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
        let mut pairs: Vec<String> = self
            .labels
            .iter()
            .zip(values)
            .map(|(label, value)| format!("{label}=\"{}\"", escape(value)))
            .collect();
        pairs.extend(bound.map(|bound| format!("le=\"{bound}\"")));
        if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn counters_are_printed_by_label() {
        let counter = Counter::new("calls_total", "Calls.", &["function", "code"]);
        counter.add(&["b\"", "OK"], 2);
        counter.add(&["a", "OK"], 0);
        let mut text = String::new();
        counter.write(&mut text);
        assert_eq!(
            text,
            "# HELP calls_total Calls.\n# TYPE calls_total counter\n\
             calls_total{function=\"a\",code=\"OK\"} 0\n\
             calls_total{function=\"b\\\"\",code=\"OK\"} 2\n"
        );
    }

    #[test]
    fn buckets_of_histograms_include_the_smaller_ones() {
        let histogram = Histogram::new("seconds", "Time.", &["f"]);
        for millis in [5, 30, 20_000] {
            histogram.observe(&["a"], Duration::from_millis(millis));
        }
        let mut text = String::new();
        histogram.write(&mut text);
        for line in [
            "seconds_bucket{f=\"a\",le=\"0.005\"} 1",
            "seconds_bucket{f=\"a\",le=\"0.025\"} 1",
            "seconds_bucket{f=\"a\",le=\"0.05\"} 2",
            "seconds_bucket{f=\"a\",le=\"10\"} 2",
            "seconds_bucket{f=\"a\",le=\"+Inf\"} 3",
            "seconds_sum{f=\"a\"} 20.035",
            "seconds_count{f=\"a\"} 3",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert_eq!(histogram.count(&["a"]), 3);
    }
}
