//! Tests of the queue: turns, back-off, pauses, and what holds whatever happens.

use proptest::prelude::*;

use super::*;

fn key(namespace: &str, name: &str) -> Key {
    Key::new(namespace, name)
}

fn queue(concurrent: usize) -> Queue {
    Queue::new(Limits { concurrent, longest_back_off: Duration::from_secs(30) })
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_key_is_taken_once_and_never_twice_at_a_time() {
    let (mut queue, now) = (queue(10), Instant::now());
    let a = key("ns", "a");
    queue.add(&a, now, Why::Change, now);
    queue.add(&a, now, Why::Change, now);
    assert_eq!(queue.take(now), Some(a.clone()));
    assert_eq!(queue.take(now), None);
    queue.add(&a, now, Why::Change, now);
    assert_eq!(queue.take(now), None, "it is running");
    queue.done(&a, Outcome::Done, now);
    assert_eq!(queue.take(now), Some(a.clone()), "it was wanted meanwhile");
    queue.done(&a, Outcome::Done, now);
    assert_eq!(queue.take(now), None);
    assert_eq!(queue.next(), None);
    assert!(queue.entries.is_empty(), "nothing is kept of a key at rest");
}

#[test]
fn failures_back_off_and_success_resets() {
    let (mut queue, mut now) = (queue(1), Instant::now());
    let a = key("", "a");
    queue.add(&a, now, Why::Change, now);
    for want in [1, 2, 4, 8, 16, 30, 30] {
        assert_eq!(queue.take(now), Some(a.clone()));
        queue.done(&a, Outcome::Retry, now);
        assert_eq!(queue.next(), Some(now + seconds(want)));
        assert_eq!(queue.take(now + seconds(want) - Duration::from_millis(1)), None);
        now += seconds(want);
    }
    assert_eq!(queue.take(now), Some(a.clone()));
    queue.done(&a, Outcome::After(seconds(7)), now);
    assert_eq!(queue.next(), Some(now + seconds(7)));
    now += seconds(7);
    assert_eq!(queue.take(now), Some(a.clone()));
    queue.done(&a, Outcome::Retry, now);
    assert_eq!(queue.next(), Some(now + seconds(1)), "the success reset it");
}

#[test]
fn three_follow_at_once_and_then_they_wait() {
    let (mut queue, mut now) = (queue(1), Instant::now());
    let a = key("", "a");
    queue.add(&a, now, Why::Change, now);
    for _ in 0..3 {
        assert_eq!(queue.take(now), Some(a.clone()));
        queue.done(&a, Outcome::Again, now);
    }
    for want in [1, 2, 4, 8, 16, 30, 30] {
        assert_eq!(queue.take(now), Some(a.clone()));
        queue.done(&a, Outcome::Again, now);
        assert_eq!(queue.take(now), None);
        now += seconds(want);
    }
}

#[test]
fn a_change_does_not_wait_for_the_back_off() {
    let (mut queue, now) = (queue(1), Instant::now());
    let a = key("", "a");
    queue.add(&a, now, Why::Change, now);
    queue.take(now);
    queue.done(&a, Outcome::Retry, now);
    assert_eq!(queue.take(now), None);
    queue.add(&a, now, Why::Change, now);
    assert_eq!(queue.take(now), Some(a));
}

#[test]
fn namespaces_take_turns() {
    let (mut queue, now) = (queue(100), Instant::now());
    for i in 0..5 {
        queue.add(&key("big", &format!("b{i}")), now, Why::Change, now);
    }
    queue.add(&key("small", "s0"), now, Why::Change, now);
    queue.add(&key("other", "o0"), now, Why::Change, now);
    let order: Vec<_> = std::iter::from_fn(|| queue.take(now)).map(|key| key.name).collect();
    assert_eq!(order, ["b0", "s0", "o0", "b1", "b2", "b3", "b4"]);
}

#[test]
fn a_key_can_be_taken_out_of_its_turn() {
    let (mut queue, now) = (queue(10), Instant::now());
    let keys = [key("a", "1"), key("a", "2"), key("b", "1"), key("b", "2")];
    for key in &keys[..3] {
        queue.add(key, now, Why::Change, now);
    }
    queue.add(&keys[3], now + seconds(1), Why::Retry, now);
    assert_eq!(queue.ready(now), keys[..3]);
    assert!(!queue.take_key(&keys[3], now), "it is not due yet");
    assert!(queue.take_key(&keys[2], now));
    assert!(!queue.take_key(&keys[2], now), "it runs");
    assert_eq!((queue.running(), queue.ready(now)), (1, keys[..2].to_vec()));
    assert_eq!(queue.ready(now + seconds(1)), [&keys[..2], &keys[3..]].concat());
    assert_eq!(queue.take(now), Some(keys[0].clone()));
    queue.done(&keys[2], Outcome::Done, now);
    assert_eq!(queue.running(), 1);
}

#[test]
fn polls_can_be_told_from_other_reasons() {
    let (mut queue, now) = (queue(1), Instant::now());
    let (a, b) = (key("", "a"), key("", "b"));
    queue.add(&a, now + seconds(1), Why::Poll, now);
    assert_eq!(queue.next_but_polls(), None);
    queue.add(&b, now + seconds(5), Why::Retry, now);
    assert_eq!(queue.next_but_polls(), Some((now + seconds(5), &b)));
    assert_eq!(queue.next(), Some(now + seconds(1)));
}

#[test]
fn one_that_asks_to_be_repeated_soon_is_not_polled_until_it_asks_again() {
    let (mut queue, now) = (queue(1), Instant::now());
    let a = key("", "a");
    queue.add(&a, now, Why::Change, now);
    queue.take(now);
    queue.done(&a, Outcome::After(seconds(2)), now);
    assert_eq!(queue.next_but_polls(), Some((now + seconds(2), &a)));
    let now = now + seconds(2);
    queue.take(now);
    queue.done(&a, Outcome::After(seconds(2)), now);
    assert_eq!(queue.next_but_polls(), None);
}

#[test]
fn one_pause_stands_for_all_failures() {
    let (mut pause, begin) = (Pause::default(), Instant::now());
    let millis = Duration::from_millis;
    for _ in 0..1000 {
        pause.trouble(begin, Duration::ZERO, begin + millis(1));
    }
    assert_eq!(pause.until(begin + millis(1)), Some(begin + millis(251)));
    let mut now = begin + millis(251);
    for want in [500, 1000, 2000, 4000, 8000, 10_000, 10_000] {
        pause.trouble(now, Duration::ZERO, now);
        assert_eq!(pause.until(now), Some(now + millis(want)));
        now += millis(want);
    }
    pause.no_trouble(begin);
    pause.trouble(now, Duration::ZERO, now);
    assert_eq!(pause.until(now), Some(now + millis(10_000)), "an old success tells nothing");
    pause.no_trouble(now);
    assert_eq!(pause.until(now), None);
    pause.trouble(now, seconds(3), now);
    assert_eq!(pause.until(now), Some(now + seconds(3)), "as long as the server asks");
}

#[derive(Clone, Debug)]
enum Step {
    Add(usize, u64),
    Take,
    Done(usize, u8),
    Forget(usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..9_usize, 0..4_u64).prop_map(|(key, delay)| Step::Add(key, delay)),
        4 => Just(Step::Take),
        3 => (0..9_usize, 0..5_u8).prop_map(|(pick, how)| Step::Done(pick, how)),
        1 => (0..9_usize).prop_map(Step::Forget),
        2 => (0..3_u64).prop_map(Step::Pass),
    ]
}

proptest! {
    /// Whatever happens, no key runs twice, no limit is exceeded, no namespace waits for another
    /// one's second turn, and everything wanted is taken in the end.
    #[test]
    fn the_promises_hold(steps in prop::collection::vec(step(), 1..200), concurrent in 1..5_usize) {
        let mut queue = queue(concurrent);
        let keys: Vec<_> = (0..9).map(|i| key(["a", "b", "c"][i % 3], &format!("k{i}"))).collect();
        let mut now = Instant::now();
        let mut running: Vec<Key> = Vec::new();
        // When each key was wanted at the earliest.
        let mut wanted: BTreeMap<Key, Instant> = BTreeMap::new();
        // How many turns each namespace had while another one was waiting.
        let mut overtaken: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Add(i, delay) => {
                    let at = now + seconds(delay);
                    queue.add(&keys[i], at, Why::Change, now);
                    let earliest = wanted.entry(keys[i].clone()).or_insert(at);
                    *earliest = at.min(*earliest);
                }
                Step::Take => {
                    let waiting: BTreeSet<_> = queue.turns.iter().cloned().collect();
                    if let Some(key) = queue.take(now) {
                        prop_assert!(!running.contains(&key), "{key} runs already");
                        prop_assert!(running.len() < concurrent);
                        overtaken.retain(|lane, _| waiting.contains(lane) && *lane != key.namespace);
                        for lane in waiting.into_iter().filter(|lane| *lane != key.namespace) {
                            let turns = overtaken.entry(lane).or_default();
                            let turns = turns.entry(key.namespace.clone()).or_default();
                            *turns += 1;
                            prop_assert!(*turns <= 1, "{} had two turns", key.namespace);
                        }
                        wanted.remove(&key);
                        running.push(key);
                    } else {
                        let due = wanted.iter().any(|(k, at)| *at <= now && !running.contains(k));
                        prop_assert!(!due || running.len() == concurrent, "nothing was taken");
                    }
                }
                Step::Done(pick, how) if !running.is_empty() => {
                    let key = running.remove(pick % running.len());
                    let outcome = match how {
                        0 => Outcome::Done,
                        1 => Outcome::After(seconds(2)),
                        2 => Outcome::Again,
                        3 => Outcome::Retry,
                        _ => Outcome::NotItsFault,
                    };
                    queue.done(&key, outcome, now);
                }
                Step::Done(..) => {}
                Step::Forget(i) => {
                    queue.forget(&keys[i]);
                    wanted.remove(&keys[i]);
                }
                Step::Pass(time) => now += seconds(time),
            }
            prop_assert_eq!(queue.running(), running.len());
            overtaken.retain(|lane, _| queue.turns.contains(lane));
        }
        // Let everything end.
        for key in std::mem::take(&mut running) {
            queue.done(&key, Outcome::Done, now);
        }
        now += Duration::from_mins(10);
        while let Some(key) = queue.take(now) {
            wanted.remove(&key);
            queue.done(&key, Outcome::Done, now);
        }
        prop_assert!(wanted.is_empty(), "never taken: {wanted:?}");
        prop_assert!(queue.later.is_empty() && queue.lanes.is_empty() && queue.turns.is_empty());
    }
}
