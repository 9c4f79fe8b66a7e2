//! Tests of finding programs, waiting for the lock, and versions. `cargo xtask env` tests the
//! build.

use super::*;

/// Two empty folders.
fn places() -> (tempfile::TempDir, Places) {
    let dir = tempfile::tempdir().unwrap();
    let places =
        Places { assets: Some(dir.path().join("assets")), cache: dir.path().join("cache") };
    std::fs::create_dir(places.assets.as_ref().unwrap()).unwrap();
    std::fs::create_dir(&places.cache).unwrap();
    (dir, places)
}

#[test]
fn versions_come_from_the_pins() {
    for module in [&ETCD, &KUBERNETES] {
        let version = module.version();
        assert_eq!(version.split('.').count(), 3, "{version}");
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{version}");
    }
}

#[test]
fn prefers_the_users_programs_over_the_cache() {
    let (_dir, places) = places();
    let cached = places.cache.join("etcd");
    std::fs::write(&cached, "").unwrap();
    let silent = &mut |line: &str| panic!("nothing to say, yet: {line}");
    let found = provision(&places, &[Tool::Etcd], silent).unwrap();
    assert_eq!(found.path(Tool::Etcd).unwrap(), cached);

    let own = places.assets.as_ref().unwrap().join("etcd");
    std::fs::write(&own, "").unwrap();
    let found = provision(&places, &[Tool::Etcd], silent).unwrap();
    assert_eq!(found.path(Tool::Etcd).unwrap(), own);
}

#[test]
fn a_program_that_was_not_asked_for_is_an_error() {
    let missing = Binaries::default().path(Tool::Kubectl).unwrap_err();
    assert_eq!(missing.to_string(), "cannot run kubectl: it was not provided");
}

#[test]
fn waits_for_whoever_builds_already() {
    let (_dir, places) = places();
    let held = lock(&places.cache, &mut |_| ()).unwrap();
    let (waits, has_waited) = std::sync::mpsc::channel();
    let other = std::thread::spawn({
        let places = places.clone();
        move || provision(&places, &[Tool::Etcd], &mut |line| waits.send(line.to_owned()).unwrap())
    });
    assert!(has_waited.recv().unwrap().starts_with("waiting for another process"));
    // The waiting process uses the program that the other one built.
    std::fs::write(places.cache.join("etcd"), "").unwrap();
    drop(held);
    let found = other.join().unwrap().unwrap();
    assert_eq!(found.path(Tool::Etcd).unwrap(), places.cache.join("etcd"));
    assert!(has_waited.recv().is_err(), "nothing was built");
}

#[test]
fn the_output_of_go_is_progress_or_an_explanation() {
    let mut output = "example.org/package\n".repeat(600);
    output += "# example.org/package/7\n./main.go:3:5: undefined: x\n";
    let mut said = Vec::new();
    let left = follow(output.as_bytes(), Tool::Etcd, &mut |line| said.push(line.to_owned()));
    assert_eq!(said, ["etcd: 250 packages compiled", "etcd: 500 packages compiled"]);
    assert_eq!(left, "# example.org/package/7\n./main.go:3:5: undefined: x");
}
