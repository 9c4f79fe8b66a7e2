//! The questions of a platform engineer at night, answered by following links.

use crate::driver::{Browser, ENTER, Node};
use crate::world::Recorder;

/// How a reader goes from page to page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hand {
    Mouse,
    Keyboard,
}

/// A reader with a browser.
struct Reader {
    browser: Browser,
    recorder: Recorder,
    hand: Hand,
}

impl Reader {
    fn new(hand: Hand, scripts: bool) -> Self {
        Self { browser: Browser::start(scripts), recorder: Recorder::with_runs(), hand }
    }

    fn begin(&self) {
        self.browser.go(&self.recorder.at("/"));
        self.browser.find("heading", "Runs");
    }

    /// Follows a link to a page.
    fn follow(&self, words: &str, to: &str) {
        match self.hand {
            Hand::Mouse => self.browser.follow(words),
            Hand::Keyboard => self.browser.tab_and_follow(words),
        }
        self.browser.arrive(to);
    }

    /// Opens a fold.
    fn open(&self, words: &str) {
        let role = "DisclosureTriangle";
        match self.hand {
            Hand::Mouse => self.browser.click(&self.browser.find(role, words)),
            Hand::Keyboard => {
                self.browser.tab_to(role, words);
                self.browser.press(ENTER);
            }
        }
    }

    fn see(&self, words: &[&str]) {
        for words in words {
            self.browser.see(words);
        }
    }

    /// From the list of runs to one of them.
    fn run(&self, clock: &str, id: &str) {
        self.begin();
        self.follow(clock, &format!("/runs/{id}"));
        self.browser.find("heading", "Store north");
    }

    /// Which step failed, what it got, and what was different in the run before.
    fn failure(&self) {
        self.run("14:03:07", "9822d93d");
        self.see(&[
            "Step 2 of 3, compose, returned a fatal result",
            "cannot compose resource bucket: size 5 is not one of 1, 3",
            "Step 3, ready, was not reached.",
        ]);
        self.follow("What it got", "/runs/9822d93d/2/request");
        self.see(&["observed", "eu-west-1"]);
        self.run("14:03:07", "9822d93d");
        self.follow("Compare", "/compare/6a3ac86e/9822d93d");
        self.see(&["spec.size 3", "5"]);
    }

    /// What changed between two steps, and in the run.
    fn changes(&self) {
        self.run("14:01:55", "6a3ac86e");
        self.follow("ready", "/runs/6a3ac86e/3");
        self.see(&["audited true"]);
        self.run("14:01:55", "6a3ac86e");
        self.follow("Difference", "/runs/6a3ac86e/diff");
        self.see(&["central", "west", "was item 3, is item 1", "whether it differs is unknown"]);
    }

    /// Why a field is as it is.
    fn blame(&self) {
        self.run("14:01:55", "6a3ac86e");
        self.follow("Blame", "/runs/6a3ac86e/blame");
        self.see(&["spec.forProvider.region", "set by step 2, compose", "14:01:55"]);
    }

    /// What the provider did.
    fn provider(&self) {
        self.begin();
        self.follow("Changes", "/changes");
        self.see(&["cannot tag bucket: AccessDenied"]);
        self.run("14:01:55", "6a3ac86e");
        self.see(&["cannot tag bucket: AccessDenied"]);
    }

    fn ask_everything(&self) {
        self.failure();
        self.changes();
        self.blame();
        self.provider();
    }
}

#[test]
fn every_question_is_answered_by_clicking() {
    Reader::new(Hand::Mouse, true).ask_everything();
}

#[test]
fn every_question_is_answered_by_clicking_without_scripts() {
    Reader::new(Hand::Mouse, false).ask_everything();
}

#[test]
fn every_question_is_answered_by_keyboard_alone() {
    Reader::new(Hand::Keyboard, true).ask_everything();
}

#[test]
fn every_question_is_answered_by_keyboard_alone_without_scripts() {
    Reader::new(Hand::Keyboard, false).ask_everything();
}

#[test]
fn the_keys_of_the_script_lead_to_the_same_answers() {
    let reader = Reader::new(Hand::Keyboard, true);
    let browser = &reader.browser;
    let press = |keys: &str, to: &str| {
        browser.press(keys);
        browser.arrive(to);
        browser.find("heading", "");
    };
    reader.begin();
    // Rows: the first is the newest run.
    let first = |node: &Node| node.role == "link" && node.name.contains("14:34");
    browser.press("j");
    browser.until("the first row has no focus", || browser.focused().filter(|node| first(node)));
    press(ENTER, "/runs/0e000007");
    // Places.
    press("gr", "/runs");
    press("gc", "/changes");
    press("gx", "/x");
    press("gw", "/warnings");
    // A run: its steps, up, older and newer, compare, blame.
    browser.go(&reader.recorder.at("/runs/9822d93d"));
    press("2", "/runs/9822d93d/2");
    press("u", "/runs/9822d93d");
    press("[", "/runs/6a3ac86e");
    press("]", "/runs/9822d93d");
    press("C", "/compare/6a3ac86e/9822d93d");
    browser.go(&reader.recorder.at("/runs/6a3ac86e"));
    press("b", "/runs/6a3ac86e/blame");
    // The search field takes letters as letters.
    browser.press("/");
    browser.until("the search has no focus", || {
        browser.focused().filter(|node| node.role.starts_with("searchbox"))
    });
    browser.press("gr");
    browser.arrive("/runs/6a3ac86e/blame");
    // Changes of a difference.
    browser.go(&reader.recorder.at("/runs/6a3ac86e/diff"));
    browser.press("n");
    browser.until("no change has the focus", || {
        browser.focused().filter(|node| node.role != "RootWebArea")
    });
    browser.press("?");
    browser.arrive("/help");
}

#[test]
fn a_fold_opens_by_mouse_and_by_keyboard_without_scripts() {
    for hand in [Hand::Mouse, Hand::Keyboard] {
        let reader = Reader::new(hand, false);
        reader.browser.go(&reader.recorder.at("/runs/6a3ac86e/diff"));
        reader.browser.find("heading", "");
        assert!(!reader.browser.text().contains("keep days 365"), "{}", reader.browser.text());
        reader.open("2 unchanged");
        reader.see(&["keep days 365"]);
    }
}

#[test]
fn a_name_is_found_and_stands_in_no_address() {
    let reader = Reader::new(Hand::Keyboard, false);
    let browser = &reader.browser;
    reader.begin();
    browser.tab_to("searchbox", "Search");
    browser.press("north-7f3");
    browser.press(ENTER);
    browser.arrive("/search");
    reader.see(&["north-7f3"]);
    assert!(!browser.url().contains("north"), "{}", browser.url());
}
