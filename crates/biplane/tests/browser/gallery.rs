//! Looks at every page that a link leads to: pictures, names and roles of all controls, widths, and
//! that no recorded text becomes markup. The pictures are kept in `target/browser`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use crate::driver::{Browser, ENTER, View};
use crate::world::Recorder;

/// Pages that show something of their own beside the first of their kind.
const STATES: [&str; 17] = [
    "/runs",
    "/search",
    "/nothing-here",
    "/runs/9822d93d",
    "/runs/6a3ac86e",
    "/runs/3c57320a",
    "/runs/a2000002",
    "/runs/a2000002/1",
    "/runs/b3000003",
    "/runs/b4000004",
    "/runs/b5000005",
    "/runs/e1000006",
    "/runs/e1000006/1",
    "/runs/0e000007",
    "/runs/6a3ac86e/diff",
    "/runs?f=of",
    "/runs/ffffffff",
];

/// Roles of things that take the focus without being controls.
const PASSIVE: [&str; 3] = ["RootWebArea", "main", "row"];

fn pictures() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = target.join("browser");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The text of a page, and its status.
fn get(recorder: &Recorder, path: &str) -> (u16, String) {
    let host = recorder.address.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

/// The kind of a page: its address without ids.
fn kind(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let is_id = |part: &&str| part.len() < 3 || part.bytes().any(|byte| byte.is_ascii_digit());
    let part = |part: &str| {
        let is_place = part == "x" || part == "r" || part.is_empty();
        if is_id(&part) && !is_place { "*".to_owned() } else { part.to_owned() }
    };
    let path: Vec<String> = path.split('/').map(part).collect();
    let query = query.split('=').next().unwrap_or_default();
    format!("{}?{query}", path.join("/"))
}

/// Follows links from page to page: the first address of each kind, and the states.
fn pages(recorder: &Recorder) -> Vec<String> {
    let mut waiting: VecDeque<String> = STATES.iter().map(|path| (*path).to_owned()).collect();
    let mut known: BTreeSet<String> = waiting.iter().cloned().collect();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    while let Some(path) = waiting.pop_front() {
        let is_state = STATES.contains(&path.as_str());
        let seen = kinds.entry(kind(&path)).or_default();
        *seen += 1;
        if *seen > 1 && !is_state {
            continue;
        }
        let (status, page) = get(recorder, &path);
        let is_nothing = matches!(path.as_str(), "/runs/ffffffff" | "/nothing-here");
        assert_eq!(status, if is_nothing { 404 } else { 200 }, "{path}");
        if !page.contains("text/html") {
            continue;
        }
        for link in page.split("href=\"").skip(1) {
            let link = link.split(['"', '#']).next().unwrap().replace("&amp;", "&");
            let is_page = link.starts_with('/') && !link.starts_with("/assets/") && link != "/";
            if is_page && known.insert(link.clone()) {
                waiting.push_back(link);
            }
        }
        found.push(path);
    }
    found
}

fn file(path: &str, state: &str, view: View) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = path.chars().map(plain).collect();
    format!("{state}{name}.{}.{}.png", view.width, view.scheme)
}

/// Goes to a page and looks at it.
fn look(browser: &Browser, recorder: &Recorder, path: &str, state: &str) -> Vec<String> {
    browser.view(View::WIDE);
    browser.go(&recorder.at(path));
    browser.find("heading", "");
    look_here(browser, path, state)
}

/// Looks at the page in all ways, and returns what is wrong with it.
fn look_here(browser: &Browser, path: &str, state: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let nodes = browser.nodes();
    for node in &nodes {
        let is_control = node.is_focusable && !PASSIVE.contains(&node.role.as_str());
        if is_control
            && (node.name.trim().is_empty()
                || matches!(node.role.as_str(), "" | "generic" | "none"))
        {
            wrong.push(format!("{path}: a control without a name or a role: {node:?}"));
        }
    }
    let count = |role: &str| nodes.iter().filter(|node| node.role == role).count();
    if (count("main"), count("banner")) != (1, 1) {
        wrong.push(format!("{path}: {} main, {} banner", count("main"), count("banner")));
    }
    if browser.script("return document.querySelectorAll('h1').length") != 1 {
        wrong.push(format!("{path}: not one h1"));
    }
    if browser.script("return window.evil === undefined") != true {
        wrong.push(format!("{path}: a recorded text became a script"));
    }
    for width in [1280, 360] {
        for scheme in ["light", "dark"] {
            let view = View { width, scheme, media: "screen" };
            browser.view(view);
            let (page, content) = browser.widths();
            if content > page {
                let far = "return [...document.querySelectorAll('body *')]\
                    .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)\
                    .slice(0, 5).map((e) => e.outerHTML.slice(0, 120))";
                wrong.push(format!("{path}: {content} on {page} pixels: {}", browser.script(far)));
            }
            std::fs::write(pictures().join(file(path, state, view)), browser.picture()).unwrap();
        }
    }
    wrong
}

#[test]
fn every_page_has_named_controls_fits_narrow_screens_and_runs_no_recorded_text() {
    let recorder = Recorder::with_runs();
    let browser = Browser::start(true);
    let pages = pages(&recorder);
    for place in ["/runs", "/x", "/changes", "/warnings", "/status", "/help"] {
        assert!(pages.iter().any(|page| page == place), "{place} is not in {pages:?}");
    }
    let mut wrong: Vec<String> =
        pages.iter().flat_map(|page| look(&browser, &recorder, page, "runs")).collect();
    // What was searched for is posted, so no link leads to the answer.
    browser.view(View::WIDE);
    browser.press("/");
    browser.press("north");
    browser.press(ENTER);
    browser.find("heading", "Search");
    browser.see("Bucket north-7f3");
    wrong.extend(look_here(&browser, "/search", "found"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_empty_store_says_what_to_do_next() {
    let recorder = Recorder::empty();
    let browser = Browser::start(true);
    let mut wrong = Vec::new();
    for path in ["/runs", "/x", "/changes", "/warnings", "/status"] {
        wrong.extend(look(&browser, &recorder, path, "empty"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn trouble_is_said_where_somebody_looks() {
    let recorder = Recorder::in_trouble();
    let browser = Browser::start(true);
    let (_, warnings) = get(&recorder, "/warnings");
    let one = warnings.split("href=\"/warnings/").nth(1).unwrap().split('"').next().unwrap();
    let one = format!("/warnings/{one}");
    let mut wrong = Vec::new();
    for (path, says) in [
        ("/runs", "12 emissions lost: queue full"),
        ("/status", "Nothing is stored: "),
        ("/warnings", "same input, different output"),
        (&one, "same input, different output"),
    ] {
        wrong.extend(look(&browser, &recorder, path, "trouble"));
        browser.see(says);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_form_for_the_token_is_all_that_strangers_see() {
    let recorder = Recorder::with_token();
    let browser = Browser::start(true);
    let mut wrong = look(&browser, &recorder, "/runs", "token");
    browser.see("These pages ask for a token.");
    browser.click(&browser.find("textbox", "Token"));
    browser.press("a guess");
    browser.press(ENTER);
    browser.see("This is not the token.");
    wrong.extend(look_here(&browser, "/token", "refused"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn print_opens_what_changed() {
    let recorder = Recorder::with_runs();
    let browser = Browser::start(true);
    browser.go(&recorder.at("/runs/6a3ac86e/diff"));
    browser.find("heading", "");
    let visible = "return [...document.querySelectorAll('.l.changed')].filter((e) => \
        e.checkVisibility() && e.getBoundingClientRect().height > 0).length";
    let count = |what: &str| browser.script(what).as_u64().unwrap();
    let shown = count(visible);
    assert!(shown > 0);
    let folded =
        "document.querySelectorAll('details').forEach((e) => { e.open = false; }); return 0";
    browser.script(folded);
    assert_eq!(count(visible), 0);
    browser.view(View { media: "print", ..View::WIDE });
    assert_eq!(count(visible), shown);
    std::fs::write(pictures().join("print.png"), browser.picture()).unwrap();
}
