//! News of a site.

use biplane_pages::http::{Body, Request};
use biplane_pages::site::Site;

use crate::world::{EMISSIONS, World, ask};

async fn follow(site: &Site, target: &str) -> tokio::sync::mpsc::Receiver<String> {
    let response = ask(site, Request::get(target)).await;
    assert_eq!(response.header("Content-Type"), "text/event-stream");
    match response.body {
        Body::Stream(events) => events,
        Body::Text(text) => panic!("{text}"),
    }
}

fn count(event: &str) -> u32 {
    event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().parse().unwrap()
}

#[tokio::test]
async fn readers_hear_of_runs_that_are_stored_while_they_look() {
    let world = World::empty();
    let (first, rest) = EMISSIONS.split_at(EMISSIONS.match_indices('\n').nth(5).unwrap().0 + 1);
    world.import(first);
    let site = world.site();
    let mut readers = Vec::new();
    for _ in 0..50 {
        readers.push(follow(&site, "/events").await);
    }
    let mut failed = follow(&site, "/events?f=of").await;
    for reader in readers.iter_mut().chain([&mut failed]) {
        assert_eq!(count(&reader.recv().await.unwrap()), 0);
    }
    world.import(rest);
    site.look_for_news().await;
    for reader in readers.iter_mut().chain([&mut failed]) {
        assert_eq!(count(&reader.recv().await.unwrap()), 3);
    }
    // One who comes back knows what was known before.
    let mut again = follow(&site, "/events?since=1").await;
    assert_eq!(count(&again.recv().await.unwrap()), 3);
}
