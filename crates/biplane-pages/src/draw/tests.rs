//! Tests each rule of drawing, and properties over random documents.

use biplane_recorder::query::blame::leaves;
use biplane_recorder::query::difference::What;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The text of a page as it is seen: a line for each item of a list and each summary, indented by
/// the lists around it.
fn seen(page: &Markup) -> Vec<String> {
    let (mut lines, mut depth, mut is_hidden) = (vec![String::new()], 0_usize, false);
    let page = page.clone().into_string();
    for piece in page.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        match tag.split(' ').next().unwrap() {
            "ul" => depth += 1,
            "/ul" => depth -= 1,
            "li" | "p" | "section" => lines.push("  ".repeat(depth.saturating_sub(1))),
            "/section" => lines.push(String::new()),
            "details" if tag.contains("bookkeeping") || tag.contains("unchanged") => {
                lines.push(String::new());
            }
            _ => {}
        }
        is_hidden = tag == "span class=\"hidden\"" || (is_hidden && tag != "/span");
        if !is_hidden {
            let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            lines.last_mut().unwrap().push_str(&text.replace("&amp;", "&"));
        }
    }
    let lines = lines.iter().map(|line| line.trim_end().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// What is seen of the difference of two documents, without the heading.
fn drawn(before: &Value, after: &Value) -> Vec<String> {
    seen(&documents("it", before, after, &Setting::default())).split_off(1)
}

#[test]
fn a_field_has_a_sign_its_path_and_its_values() {
    let before = json!({"spec": {"a": 1, "gone": true, "region": "eu-central-1"}});
    let after = json!({"spec": {"a": 1, "new": {"team": "a"}, "region": "eu-west-1"}});
    assert_eq!(
        drawn(&before, &after),
        [
            "spec",
            "  1 unchanged",
            "    a 1",
            "  −gone true",
            "  +new.team a",
            "  ~region eu-central-1 → eu-west-1",
        ]
    );
}

#[test]
fn signs_have_words_and_values_are_marked_as_old_and_new() {
    let setting = Setting::default();
    let page = documents("it", &json!({"a": "x"}), &json!({"a": "y"}), &setting).into_string();
    assert!(page.contains("<span class=\"hidden\">changed </span>"), "{page}");
    assert!(page.contains("<del>x</del>") && page.contains("<ins>y</ins>"), "{page}");
    let page = documents("it", &json!({"a": "x"}), &json!({"b": "x"}), &setting).into_string();
    assert!(page.contains("<span class=\"hidden\">added </span>"), "{page}");
    assert!(page.contains("<span class=\"hidden\">removed </span>"), "{page}");
}

#[test]
fn the_list_drawn_is_the_list_as_it_is_now() {
    let before = json!({"rules": [
        {"name": "archive", "days": 90}, {"name": "keep"}, {"name": "expire", "days": 30},
    ]});
    let after = json!({"rules": [
        {"name": "expire", "days": 14}, {"name": "keep"}, {"name": "new"},
    ]});
    assert_eq!(
        drawn(&before, &after),
        [
            "rules by name",
            "  −archive was item 1",
            "    −days 90",
            "    −name archive",
            "  ↕expire was item 3, is item 1",
            "    1 unchanged",
            "      name expire",
            "    ~days 30 → 14",
            "  1 unchanged",
            "    keep name keep",
            "  +new name new",
        ]
    );
}

#[test]
fn what_is_gone_is_struck_where_it_was() {
    assert_eq!(
        drawn(&json!(["a1", "b1", "c1", "d1"]), &json!(["a1", "c1", "x1", "d1"])),
        [
            "1 unchanged",
            "  item 1 a1",
            "−was item 2 b1",
            "1 unchanged",
            "  item 2 c1",
            "+item 3 x1",
            "1 unchanged",
            "  item 4 d1",
        ]
    );
    // A value that moved says where it was.
    assert_eq!(
        drawn(&json!(["a1", "b1", "c1"]), &json!(["b1", "c1", "a1"])),
        ["2 unchanged", "  item 1 b1", "  item 2 c1", "↕was item 1, is item 3 a1"]
    );
    // At the end, and in place of another.
    assert_eq!(
        drawn(&json!([1, 1, 2, 9]), &json!([1, 2, 2])),
        [
            "1 unchanged",
            "  item 1 1",
            "−was item 2 1",
            "1 unchanged",
            "  item 2 2",
            "−was item 4 9",
            "+item 3 2",
        ]
    );
}

#[test]
fn what_is_empty_now_shows_what_is_gone() {
    assert_eq!(
        drawn(&json!({"list": ["x1"], "tags": {"a": 1}}), &json!({"list": [], "tags": {}})),
        ["−list item 1 was item 1 x1", "−tags.a 1"]
    );
}

#[test]
fn lists_without_identity_are_drawn_by_position() {
    assert_eq!(
        drawn(
            &json!({"l": [{"a": 1}, {"a": 2, "b": 1}]}),
            &json!({"l": [{"a": 1}, {"a": 3, "b": 1}]})
        ),
        [
            "l",
            "  1 unchanged",
            "    item 1 a 1",
            "  item 2",
            "    1 unchanged",
            "      b 1",
            "    ~a 2 → 3"
        ]
    );
}

#[test]
fn a_value_that_became_a_document_is_drawn_as_both() {
    assert_eq!(
        drawn(&json!({"a": "x"}), &json!({"a": {"b": 1, "c": []}})),
        ["~a", "  −value x", "  +b 1", "  +c []"]
    );
}

#[test]
fn bookkeeping_is_hidden_and_counted() {
    let object = |version: &str, size: u8| {
        json!({"metadata": {"name": "n", "resourceVersion": version, "generation": size},
            "spec": {"size": size}})
    };
    assert_eq!(
        drawn(&object("1", 1), &object("2", 2)),
        [
            "1 unchanged",
            "  metadata.name n",
            "~spec.size 1 → 2",
            "2 bookkeeping changes",
            "~metadata.generation 1 → 2",
            "~metadata.resourceVersion \"1\" → \"2\"",
        ]
    );
    let page = documents("it", &object("1", 1), &object("2", 1), &Setting::default());
    assert_eq!(seen(&page), ["Nothing differs."]);
}

#[test]
fn whether_redacted_values_differ_is_unknown() {
    let secret = json!({"data": {"password": "**REDACTED**", "user": "x"}});
    let page = documents("it", &secret, &secret, &Setting::default());
    assert_eq!(
        seen(&page),
        [
            "it 1 redacted",
            "data",
            "  1 unchanged",
            "    user x",
            "  ?password redacted whether it differs is unknown",
        ]
    );
    assert!(page.into_string().contains("<span class=\"chip redacted\">redacted</span>"));
}

fn request() -> Value {
    json!({
        "observed": {"composite": {"resource": {
            "kind": "Store", "spec": {"region": "eu-west-1"},
        }}},
        "desired": {"resources": {
            "bucket": {"resource": {"kind": "Bucket", "metadata": {"name": "b"},
                "spec": {"region": "eu-central-1"}}},
            "gone": {"resource": {"kind": "Old"}},
            "same": {"resource": {"kind": "Same", "metadata": {"generation": 1}}},
        }},
        "context": {"a": 1},
    })
}

fn response() -> Value {
    json!({
        "desired": {"resources": {
            "bucket": {"resource": {"kind": "Bucket", "metadata": {"name": "b"},
                "spec": {"region": "eu-west-1"}}, "ready": "READY_TRUE",
                "connectionDetails": {"user": "**REDACTED**"}},
            "role": {"resource": {"kind": "Role", "spec": {"region": "eu-west-1"}}},
            "same": {"resource": {"kind": "Same", "metadata": {"generation": 2}}},
        }},
        "context": {"a": 1, "b": 2},
    })
}

#[test]
fn a_step_is_drawn_by_resource_with_hints_and_contents() {
    let page = step(&request(), &response(), &Setting::default());
    assert_eq!(
        seen(&page),
        [
            "~bucket 3 fields",
            "−gone 1 field",
            "+role 2 fields",
            "~context 1 field",
            "~bucket Bucket b 3 fields",
            "~ready unspecified → true",
            "+connection detail user redacted",
            "2 unchanged",
            "  kind Bucket",
            "  metadata.name b",
            "~spec.region eu-central-1 → eu-west-1 same value: Store spec.region",
            "−gone Old 1 field",
            "−kind Old",
            "+role Role 2 fields",
            "+kind Role",
            "+spec.region eu-west-1 same value: Store spec.region",
            "~context 1 field",
            "1 unchanged",
            "  a 1",
            "+b 2",
            "1 unchanged resource",
            "same Same 1 bookkeeping change",
        ]
    );
    let page = page.into_string();
    assert!(page.contains("<a href=\"#d3\">") && page.contains("id=\"d3\""), "{page}");
    let same = step(&request(), &request(), &Setting::default());
    assert_eq!(seen(&same)[0], "This step returned what it was given.");
}

#[test]
fn a_field_says_which_step_set_it() {
    let step = StepRef { number: 2, name: "compose".to_owned(), function: "f".to_owned() };
    let stamps = Stamps::new(|resource| match resource {
        "bucket" => [("spec.region".to_owned(), step.clone())].into(),
        _ => SetBy::new(),
    });
    let setting = Setting { stamps: Some(&stamps), ..Setting::default() };
    let (request, response) = (request(), response());
    let page = states(request.get("desired"), response.get("desired"), &setting).into_string();
    assert_eq!(page.matches("title=\"set by step 2, compose\"").count(), 1, "{page}");
}

#[test]
fn beyond_the_budget_resources_are_compared_as_a_whole_and_the_page_says_so() {
    let limits = Limits { nodes: 2, ..Limits::default() };
    let few = Setting { limits, ..Setting::default() };
    let late = Setting { is_late: &|| true, ..Setting::default() };
    for setting in [few, late] {
        let lines = seen(&step(&request(), &response(), &setting));
        assert!(lines[0].contains("too much to compare in time"), "{lines:?}");
        let says = |line: &String| line.contains("too large to be compared field by field");
        assert!(lines.iter().any(says), "{lines:?}");
        // Every resource that differs is still named.
        for name in ["bucket", "gone", "role", "context"] {
            assert!(lines.iter().any(|line| line.contains(name)), "{name}: {lines:?}");
        }
    }
}

#[test]
fn a_long_difference_has_several_pages() {
    let document = |from: u32| {
        let fields = (0..25).map(|n| (format!("field-{n:02}"), Value::from(n * from)));
        Value::Object(fields.chain([("same".to_owned(), json!("x"))]).collect())
    };
    let (before, after) = (document(1), document(2));
    let limits = Limits { lines: 10, ..Limits::default() };
    let mut from = 0;
    let mut paths = Vec::new();
    for page in 0..3 {
        let setting =
            Setting { limits, from, next: &|from| format!("?from={from}"), ..Setting::default() };
        let html = documents("it", &before, &after, &setting).into_string();
        // What did not change is counted, and not drawn.
        assert!(!html.contains("data-path=\"same\""), "{html}");
        let found = html.split("data-path=\"").skip(1);
        let found: Vec<_> = found.map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
        from += found.len();
        paths.extend(found);
        let link = format!("href=\"?from={from}\"");
        assert_eq!(html.contains(&link), page < 2, "{html}");
    }
    // The first field is 0 in both.
    let want: Vec<_> = (1..25).map(|n| format!("field-{n:02}")).collect();
    assert_eq!(paths, want);
    // The same by size. A page has at least one line.
    let limits = Limits { bytes: 1, ..Limits::default() };
    let setting = Setting { limits, ..Setting::default() };
    let html = documents("it", &before, &after, &setting).into_string();
    assert_eq!(html.matches("data-path=").count(), 1, "{html}");
}

/// The resources and paths of all lines that differ, in the order of the page.
fn differing(html: &str) -> Vec<(String, String)> {
    let sections = html.split("<section class=\"drawn ").skip(1);
    let lines = sections.flat_map(|section| {
        let title = section.split("</h3>").next().unwrap_or_default().to_owned();
        let lines = section
            .split("data-path=\"")
            .skip(1)
            .filter(|line| line.split('>').next().is_some_and(|tag| tag.contains("data-change")));
        let paths = lines.map(|line| line.split('"').next().unwrap_or_default().to_owned());
        paths.map(move |path| (title.clone(), path)).collect::<Vec<_>>()
    });
    lines.collect()
}

#[test]
fn pages_of_many_resources_have_every_line_once() {
    let resource = |at: u32, version: u32| {
        let fields = (0..5).map(|n| (format!("field-{n}"), Value::from(n * version)));
        let spec = Value::Object(fields.collect());
        let metadata = json!({"name": at.to_string(), "generation": version});
        (format!("r{at:02}"), json!({"resource": {"metadata": metadata, "spec": spec}}))
    };
    // Some are gone, some differ, some differ in bookkeeping only, some are equal, some are new.
    let state = |numbers: std::ops::Range<u32>, version: u32| {
        let version = |at: u32| if at.is_multiple_of(3) { 1 } else { version };
        let resources: Map<String, Value> = numbers.map(|at| resource(at, version(at))).collect();
        json!({"resources": resources})
    };
    let (before, after) = (state(0..20, 2), state(6..30, 3));
    let page = |lines: usize, from: usize| {
        let limits = Limits { lines, bytes: usize::MAX, ..Limits::default() };
        let next = |from: usize| format!("?from={from}");
        let setting = Setting { limits, from, next: &next, ..Setting::default() };
        states(Some(&before), Some(&after), &setting).into_string()
    };
    let all = page(usize::MAX, 0);
    let all: Vec<_> =
        differing(&all).into_iter().filter(|(_, path)| path != "metadata.generation").collect();
    assert!(all.len() > 100, "{all:?}");
    for lines in [1, 4, 7, 50] {
        let (mut from, mut found) = (0, Vec::new());
        loop {
            let html = page(lines, from);
            found.extend(differing(&html));
            let Some((_, next)) = html.split_once("href=\"?from=") else { break };
            let next = next.split('"').next().unwrap().parse().unwrap();
            assert_eq!(next, from + lines);
            from = next;
        }
        assert_eq!(found, all, "{lines} lines a page");
    }
}

#[test]
fn a_page_is_not_larger_than_it_may_be() {
    let evil = "<\"&>".repeat(200);
    let document = |n: u8| {
        let fields = (0..200)
            .map(|at| (format!("{at}{}", "<".repeat(at % 40)), json!(format!("{n}{evil}{at}"))));
        Value::Object(fields.collect())
    };
    let limits = Limits { bytes: 50_000, ..Limits::default() };
    let setting = Setting { limits, ..Setting::default() };
    let page = documents("it", &document(1), &document(2), &setting).into_string();
    // What surrounds the lines is small.
    assert!(page.len() < 52_000, "{}", page.len());
    assert!(page.matches("data-path").count() > 3);
}

#[test]
fn fields_of_an_answer_are_drawn_one_a_line() {
    let item = |path: &str, change, bookkeeping| FieldItem {
        path: path.to_owned(),
        change,
        before: Some(json!(1)),
        after: Some(json!(2)),
        bookkeeping,
        ..FieldItem::default()
    };
    let items =
        [item("a.b", Sign::Changed, false), item("metadata.generation", Sign::Changed, true)];
    assert_eq!(
        seen(&fields(&items, &Setting::default())),
        ["~a.b 1 → 2", "1 bookkeeping change", "~metadata.generation 1 → 2"]
    );
}

/// Documents with texts that would be markup.
fn hostile() -> impl Strategy<Value = Value> {
    let words =
        ["a", "name", "<x-evil>", "\" onx=\"1", "</li><x-evil", "&amp;", "**REDACTED**", "'"];
    let word = prop::sample::select(words.to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4_i64).prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let fields = ["a", "b", "name", "metadata", "generation", "<x-evil>", "\" onx=\"1"];
        let field = prop::sample::select(fields.to_vec());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(field, inner.clone(), 0..5).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
            prop::collection::vec((0..5_u8, inner), 0..5).prop_map(|items| {
                let item = |(name, value): (u8, Value)| json!({"name": format!("<x-evil{name}"), "v": value});
                items.into_iter().map(item).collect::<Vec<_>>().into()
            }),
        ]
    })
}

/// The paths of all plain values that differ.
fn changed(before: &Value, after: &Value) -> Vec<Path> {
    let mut paths = Vec::new();
    for change in difference::difference(before, after).changes {
        let mut take = |value: &Value| {
            for (below, _) in leaves(value) {
                paths.push(Path([change.path.0.clone(), below.0].concat()));
            }
        };
        match &change.what {
            What::Added { value, .. } | What::Removed { value, .. } => take(value),
            What::Changed { before, after } => {
                take(before);
                take(after);
            }
            What::Moved { .. } => paths.push(change.path.clone()),
        }
    }
    paths
}

proptest! {
    #[test]
    fn no_input_becomes_markup_and_every_path_that_differs_is_on_the_page(
        before in hostile(),
        after in hostile(),
    ) {
        let page = documents("<x-evil>", &before, &after, &Setting::default()).into_string();
        prop_assert!(!page.contains("<x-evil") && !page.contains("\" onx="), "{}", page);
        for path in changed(&before, &after) {
            let path = path.to_string();
            let path = path.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let path = format!("data-path=\"{}\"", path.replace('"', "&quot;"));
            prop_assert!(page.contains(&path), "{} is not in {}", path, page);
        }
        // Every tag is closed.
        for tag in ["ul", "li", "span", "details", "section", "ins", "del"] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            prop_assert_eq!(opened, page.matches(&format!("</{tag}>")).count());
        }
    }

    #[test]
    fn what_does_not_differ_is_not_drawn_as_different(document in hostile()) {
        let page = documents("it", &document, &document, &Setting::default()).into_string();
        for class in ["l added", "l removed", "l changed", "l moved", "<ins", "<del"] {
            prop_assert!(!page.contains(class), "{}", page);
        }
    }
}
