//! What each page says.

use biplane_pages::http::Request;

use crate::world::{World, addresses, ask, page, sentence, text};

#[tokio::test]
async fn each_page_begins_with_what_happened() {
    let world = World::example();
    let site = world.site();
    for (target, want) in [
        ("/runs", "4 runs in the last 24 hours. 1 failed, in step compose of stores."),
        (
            "/runs/9822d93d",
            "✕ Step 2 of 3, compose, returned a fatal result: \"cannot compose resource bucket: size 5 is not one of 1, 3\". Step 3, ready, was not reached. The run before succeeded; 6 inputs differ, the first: observed composite spec.size 3 -> 5.",
        ),
        ("/runs/6a3ac86e/diff", "Changed bucket (5 fields), added role."),
        ("/runs/6a3ac86e/3", "Step 3 ready answered: it changed 1 resource."),
        (
            "/compare/6a3ac86e/9822d93d",
            "6 inputs differ, the first: observed composite spec.size 3 -> 5.",
        ),
        ("/changes", "✕ 4 changes. 1 failed."),
        (
            "/changes/3",
            "✕ The update failed: cannot tag bucket: AccessDenied. What is desired had changed.",
        ),
        ("/x", "✕ 1 composite resource. The last run of 1 failed."),
        ("/status", "The store takes"),
    ] {
        let said = sentence(&page(&site, target).await);
        assert!(
            said.trim_start_matches("✕ ").starts_with(want.trim_start_matches("✕ ")),
            "{target}: {said}"
        );
    }
}

#[tokio::test]
async fn every_link_of_every_page_leads_to_a_page() {
    let world = World::example();
    let site = world.site();
    let mut waiting = vec!["/".to_owned(), "/runs?f=of".to_owned(), "/runs?f=u.s7d".to_owned()];
    let mut known = waiting.clone();
    let mut seen = 0;
    while let Some(address) = waiting.pop() {
        let response = ask(&site, Request::get(&address)).await;
        match response.status {
            303 => {
                let target = response.header("Location").to_owned();
                if !known.contains(&target) {
                    known.push(target.clone());
                    waiting.push(target);
                }
            }
            200 => {
                seen += 1;
                let body = response.body_text();
                assert_eq!(
                    body.matches("<h1").count(),
                    usize::from(body.contains("<html")),
                    "{address}"
                );
                for next in addresses(body) {
                    if !known.contains(&next) {
                        known.push(next.clone());
                        waiting.push(next);
                    }
                }
            }
            status => panic!("{address}: {status}: {}", text(response.body_text())),
        }
    }
    assert!(seen > 60, "only {seen} pages");
    // Names stand in no address.
    for name in ["north", "team-a", "stores", "bucket", "compose", "function-"] {
        assert!(!known.iter().any(|address| address.contains(name)), "{name}: {known:?}");
    }
}

#[tokio::test]
async fn every_page_ends_with_the_command_that_prints_the_same() {
    let world = World::example();
    let site = world.site();
    for (target, want) in [
        ("/runs?f=of.s7d", "$ biplane inspector runs --since=7d --failed"),
        ("/runs/9822d93d", "$ biplane inspector run 9822d93d"),
        ("/runs/9822d93d/2/request", "$ biplane inspector steps 9822d93d/2"),
        ("/runs/6a3ac86e/3", "$ biplane inspector diff 6a3ac86e/3"),
        ("/compare/6a3ac86e/9822d93d", "$ biplane inspector compare 6a3ac86e 9822d93d"),
        ("/changes/3", "$ biplane changelogs show 3"),
    ] {
        let page = page(&site, target).await;
        let command = page.split_once("id=\"command\">").unwrap().1;
        assert_eq!(command.split_once("</code>").unwrap().0, want, "{target}");
    }
}

#[tokio::test]
async fn the_run_that_failed() {
    let world = World::example();
    insta::assert_snapshot!(text(&page(&world.site(), "/runs/9822d93d").await));
}

#[tokio::test]
async fn the_list_of_runs() {
    let world = World::example();
    insta::assert_snapshot!(text(&page(&world.site(), "/runs").await));
}

#[tokio::test]
async fn the_step_that_failed() {
    let world = World::example();
    insta::assert_snapshot!(text(&page(&world.site(), "/runs/9822d93d/2").await));
}

#[tokio::test]
async fn a_composite_resource_and_what_it_composes() {
    let world = World::example();
    let site = world.site();
    let list = page(&site, "/x").await;
    let composite = addresses(&list).into_iter().find(|a| a.starts_with("/x/")).unwrap();
    let one = page(&site, &composite).await;
    insta::assert_snapshot!("composite", text(&one));
    let names: Vec<String> = addresses(&one)
        .into_iter()
        .filter(|a| a.starts_with("/r/") && !a.contains("why"))
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    insta::assert_snapshot!("resource", text(&page(&site, &names[0]).await));
}

#[tokio::test]
async fn the_list_of_changes_and_one_of_them() {
    let world = World::example();
    let site = world.site();
    insta::assert_snapshot!("changes", text(&page(&site, "/changes").await));
    let one = text(&page(&site, "/changes/4").await);
    assert!(
        one.contains("certain") && one.contains("It was tried again after a failure."),
        "{one}"
    );
}

#[tokio::test]
async fn messages_are_trees_whose_parts_have_pages() {
    let world = World::example();
    let site = world.site();
    let whole = text(&page(&site, "/runs/6a3ac86e/2/request").await);
    assert!(whole.contains("observed") && whole.contains("eu-west-1"), "{whole}");
    let part = text(&page(&site, "/runs/6a3ac86e/2/request?p=0").await);
    assert!(part.contains("All of it"), "{part}");
    for wrong in ["?p=99", "?p=x", "?p=0.0.0.0.0.0.0.0.0.0.0.0"] {
        let target = format!("/runs/6a3ac86e/2/request{wrong}");
        assert_eq!(ask(&site, Request::get(&target)).await.status, 404, "{target}");
    }
}

#[tokio::test]
async fn filters_are_posted_and_become_ids() {
    let world = World::example();
    let site = world.site();
    let post = |target: &str, form: &str| Request::post(target, form);
    let all = page(&site, "/runs").await;
    let option =
        all.split_once("name=\"composition\"").unwrap().1.split("value=\"").nth(2).unwrap();
    let composition = option.split('"').next().unwrap();
    let form = format!("composition={composition}&outcome=f&since=7d&name=&changed=1");
    let response = ask(&site, post("/runs", &form)).await;
    let target = response.header("Location").to_owned();
    assert_eq!(target, format!("/runs?f=c{composition}.of.s7d.u"));
    let filtered = page(&site, &target).await;
    assert_eq!(sentence(&filtered), "1 run fits the filter. 1 failed.");
    assert!(filtered.contains("--composition=stores"), "{}", text(&filtered));
    // A name of one owner becomes its id; other names are searched.
    let response = ask(&site, post("/runs", "name=north")).await;
    assert!(response.header("Location").starts_with("/runs?f=x"), "{response:?}");
    let response = ask(&site, post("/runs", "name=nobody")).await;
    assert_eq!(
        (response.status, sentence(response.body_text()).as_str()),
        (200, "Nothing was found for \u{201c}nobody\u{201d}.")
    );
    let response = ask(&site, post("/changes", "name=&failed=1&operation=2")).await;
    assert_eq!(response.header("Location"), "/changes?f=w2.of");
    assert!(text(&page(&site, "/changes?f=w2.of").await).contains("AccessDenied"));
}

#[tokio::test]
async fn a_filter_without_match_names_wider_ones() {
    let world = World::example();
    let page = page(&world.site(), "/runs?f=o4.s15m").await;
    let said = text(&page);
    assert!(
        said.contains("No run fits the filter") && said.contains("runs with any outcome"),
        "{said}"
    );
}

#[tokio::test]
async fn searches_find_runs_resources_fields_and_messages() {
    let world = World::example();
    let site = world.site();
    let search = async |words: &str| {
        let words = words.replace('/', "%2F").replace(' ', "+");
        ask(&site, Request::post("/search/", &format!("q={words}"))).await
    };
    assert_eq!(search("9822d93d").await.header("Location"), "/runs/9822d93d");
    for (words, want) in [
        ("north", "Store north"),
        ("bucket/north", "Bucket north-7f3"),
        ("spec.forProvider.region", "eu-central-1"),
        ("cannot compose", "9822d93d"),
        ("accessdenied", "cannot tag bucket"),
        ("zebra", "Nothing was found"),
        ("", "Nothing was found"),
        ("\" OR 1=1 --", "Nothing was found"),
    ] {
        let response = search(words).await;
        assert_eq!(response.status, 200, "{words}");
        let said = text(response.body_text());
        assert!(said.contains(want), "{words}: {said}");
    }
}

#[tokio::test]
async fn a_time_is_posted_and_becomes_a_number() {
    let world = World::example();
    let site = world.site();
    let list = page(&site, "/x").await;
    let composite = addresses(&list).into_iter().find(|a| a.starts_with("/x/")).unwrap();
    let at = async |time: &str| {
        ask(&site, Request::post(&format!("{composite}/at"), &format!("at={time}"))).await
    };
    let target = at("14:02").await.header("Location").to_owned();
    assert!(target.starts_with(&format!("{composite}/at/")), "{target}");
    let then = page(&site, &target).await;
    insta::assert_snapshot!("at_a_time", text(&then));
    assert_eq!(at("noon").await.status, 400);
    let never = at("2026-01-01").await.header("Location").to_owned();
    assert_eq!(ask(&site, Request::get(&never)).await.status, 404);
}

#[tokio::test]
async fn causes_are_said_with_their_evidence() {
    let world = World::example();
    let site = world.site();
    let list = page(&site, "/x").await;
    let composite = addresses(&list).into_iter().find(|a| a.starts_with("/x/")).unwrap();
    let one = page(&site, &composite).await;
    let failed = addresses(&one).into_iter().find(|a| a.ends_with("/why/failed")).unwrap();
    let why = page(&site, &failed).await;
    assert!(sentence(&why).contains("size 5 is not one of 1, 3"), "{}", text(&why));
    assert!(text(&why).contains("Evidence"), "{}", text(&why));
    let wrong = failed.replace("failed", "angry");
    assert_eq!(ask(&site, Request::get(&wrong)).await.status, 404);
}

#[tokio::test]
async fn warnings_are_listed() {
    let world = World::example();
    let site = world.site();
    let list = text(&page(&site, "/warnings").await);
    assert!(list.starts_with("Warnings"), "{list}");
    assert_eq!(ask(&site, Request::get("/warnings/x.y")).await.status, 404);
}

#[tokio::test]
async fn states_without_content_say_why_and_what_next() {
    let site = World::empty().site();
    // The store is gone with its folder.
    let broken = ask(&site, Request::get("/runs")).await;
    assert_eq!(broken.status, 503);
    assert!(
        sentence(broken.body_text()).contains("there is no store")
            || sentence(broken.body_text()).contains("There is no store"),
        "{}",
        text(broken.body_text())
    );
    let world = World::empty();
    let site = world.site();
    insta::assert_snapshot!("nothing_received", text(&page(&site, "/runs").await));
    let changes = text(&page(&site, "/changes").await);
    assert!(
        changes.contains("No provider has sent a change log.")
            && changes.contains("--enable-changelogs"),
        "{changes}"
    );
    assert_eq!(sentence(&page(&site, "/x").await), "No composite resource has a run that is kept.");
    assert!(
        text(&page(&site, "/status").await).contains("Nobody has sent anything.")
            || text(&page(&site, "/status").await).contains("import")
    );
    for (target, status, want) in [
        ("/runs/ffffffff", 404, "No run begins with ffffffff."),
        ("/runs/Store%2Fnorth", 404, "There is no page at this address."),
        ("/nowhere", 404, "There is no page at this address."),
        ("/x/zz", 404, "This resource is no longer kept."),
        ("/r/zz", 404, "This resource is no longer kept."),
        ("/x/-1", 404, "There is no page at this address."),
        ("/changes/99", 404, "There is no change 99."),
        ("/changes/x", 404, "There is no page at this address."),
        ("/runs?after=x", 400, "\"x\" is no place in a list."),
        ("/runs?f=czz", 404, "What the filter names is no longer kept."),
    ] {
        let response = ask(&site, Request::get(target)).await;
        assert_eq!(
            (response.status, sentence(response.body_text()).as_str()),
            (status, want),
            "{target}"
        );
    }
}

#[tokio::test]
async fn a_step_without_effect_and_a_call_without_answer_are_said() {
    let world = World::example();
    let site = world.site();
    let first = text(&page(&site, "/runs/6a3ac86e/1").await);
    assert!(
        first.contains("This step returned what it was given.") || first.contains("context"),
        "{first}"
    );
    let needs = text(&page(&site, "/runs/6a3ac86e/3/needs").await);
    assert!(needs.contains("The step required no resources."), "{needs}");
    for target in ["/runs/6a3ac86e/9", "/runs/6a3ac86e/compose", "/runs/6a3ac86e/1/other"] {
        assert_eq!(ask(&site, Request::get(target)).await.status, 404, "{target}");
    }
}

#[tokio::test]
async fn a_recorder_that_cannot_write_says_so() {
    let world = World::example();
    let mut options = world.options();
    options.trouble = std::sync::Arc::new(|| Some("the disk is full".to_owned()));
    let site = biplane_pages::site::Site::new(options);
    let said = sentence(&page(&site, "/status").await);
    assert!(said.contains("Nothing is stored: the disk is full."), "{said}");
    let verified = text(&page(&site, "/status/verify").await);
    assert!(verified.contains("All are whole") && verified.contains("4 entries"), "{verified}");
}

#[tokio::test]
async fn runs_are_filtered_by_a_label_without_its_words_in_the_address() {
    let world = World::example();
    let site = world.site();
    let list = page(&site, "/runs").await;
    let option = list.split("<option value=\"").find(|part| part.contains(">team=a<")).unwrap();
    let label = option.split('"').next().unwrap();
    let posted = ask(&site, Request::post("/runs", &format!("label={label}"))).await;
    let target = posted.header("Location").to_owned();
    assert_eq!(target, format!("/runs?f=l{label}"));
    let filtered = page(&site, &target).await;
    assert!(text(&filtered).contains("--selector=team=a"), "{}", text(&filtered));
    assert!(sentence(&filtered).contains("fit the filter"), "{}", sentence(&filtered));
    let unknown = ask(&site, Request::get("/runs?f=l000000000000")).await;
    assert_eq!(unknown.status, 404);
}
