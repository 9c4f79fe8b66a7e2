//! Who may ask, and that nothing recorded becomes markup or a secret on a page.

use biplane_pages::http::Request;
use biplane_pages::site::Site;
use proptest::prelude::*;

use crate::world::{EMISSIONS, World, addresses, ask, page};

#[tokio::test]
async fn only_own_names_and_those_that_were_told_are_answered() {
    let world = World::example();
    let site = world.site();
    for (host, status) in [
        ("127.0.0.1:7654", 200),
        ("localhost", 200),
        ("[::1]:7654", 200),
        ("recorder.example.org", 200),
        ("Recorder.example.org:443", 200),
        ("evil.example.com", 403),
        ("recorder.example.org.evil.com", 403),
        ("", 403),
    ] {
        let response = site.answer(Request::get("/runs").with("host", host)).await;
        assert_eq!(response.status, status, "{host}");
    }
}

#[tokio::test]
async fn every_answer_forbids_what_pages_do_not_need() {
    let world = World::example();
    let site = world.site();
    for target in ["/runs", "/nowhere", "/api/v1/runs", "/api/v1/nothing", "/assets/icon.svg"] {
        let response = ask(&site, Request::get(target)).await;
        let policy = response.header("Content-Security-Policy");
        assert!(policy.starts_with("default-src 'none';"), "{target}: {policy}");
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(response.header("Referrer-Policy"), "no-referrer", "{target}");
        assert_eq!(response.header("X-Content-Type-Options"), "nosniff", "{target}");
        let cache = response.header("Cache-Control");
        assert_eq!(cache == "no-store", !target.starts_with("/assets"), "{target}: {cache}");
    }
}

#[tokio::test]
async fn pages_use_own_files_alone_and_have_no_inline_code() {
    let world = World::example();
    let site = world.site();
    for target in
        ["/runs", "/runs/6a3ac86e", "/runs/6a3ac86e/diff", "/runs/6a3ac86e/blame", "/help"]
    {
        let page = page(&site, target).await;
        assert!(!page.contains(" style=\"") && !page.contains("<style"), "{target}");
        assert!(!page.contains("javascript:") && !page.contains(" onclick"), "{target}");
        for source in page.split("src=\"").skip(1) {
            let source = source.split('"').next().unwrap();
            assert!(source.starts_with("/assets/"), "{source}");
            assert_eq!(ask(&site, Request::get(source)).await.status, 200);
        }
    }
}

#[tokio::test]
async fn other_methods_and_forms_of_other_sites_are_refused() {
    let world = World::example();
    let site = world.site();
    for method in ["PUT", "DELETE", "OPTIONS", "TRACE"] {
        let request = Request { method: method.to_owned(), ..Request::get("/runs") };
        assert_eq!(ask(&site, request).await.status, 405, "{method}");
    }
    let post = || Request::post("/theme", "theme=dark&back=/runs");
    for (name, value, status) in [
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
        ("sec-fetch-site", "same-origin", 303),
        ("origin", "https://evil.example.com", 403),
        ("origin", "http://127.0.0.1:7654", 303),
    ] {
        let response = ask(&site, post().with(name, value)).await;
        assert_eq!(response.status, status, "{name}: {value}");
    }
    assert_eq!(ask(&site, Request::post("/runs/9822d93d", "")).await.status, 404);
}

#[tokio::test]
async fn the_theme_is_kept_and_leads_back_only_to_this_site() {
    let world = World::example();
    let site = world.site();
    for (back, want) in [
        ("/runs/9822d93d", "/runs/9822d93d"),
        ("https://evil.example.com", "/"),
        ("//evil.example.com", "/"),
        ("/\\evil.example.com", "/"),
    ] {
        let form = format!("theme=dark&back={}", back.replace(':', "%3A"));
        let response = ask(&site, Request::post("/theme", &form)).await;
        assert_eq!(response.header("Location"), want);
        assert!(response.header("Set-Cookie").starts_with("theme=dark;"));
    }
    let response = ask(&site, Request::get("/help").with("cookie", "theme=dark")).await;
    assert!(response.body_text().contains("data-theme=\"dark\""));
}

#[tokio::test]
async fn a_token_is_asked_for_once() {
    let world = World::example();
    let site = world.with_token("open-sesame");
    for target in ["/", "/runs", "/runs/9822d93d", "/status", "/nowhere"] {
        let response = ask(&site, Request::get(target)).await;
        assert_eq!(response.status, 401, "{target}");
        assert!(response.body_text().contains("type=\"password\""), "{target}");
        assert!(!response.body_text().contains("north"), "{target}");
    }
    for target in ["/api/v1/runs", "/events"] {
        let response = ask(&site, Request::get(target)).await;
        assert_eq!((response.status, response.header("WWW-Authenticate")), (401, "Bearer"));
    }
    let bearer = Request::get("/api/v1/runs").with("authorization", "Bearer open-sesame");
    assert_eq!(ask(&site, bearer).await.status, 200);
    let wrong = ask(&site, Request::post("/token", "token=open")).await;
    assert_eq!(wrong.status, 401);
    assert_eq!(wrong.header("Set-Cookie"), "");
    let right = ask(&site, Request::post("/token", "token=open-sesame")).await;
    let cookie = right.header("Set-Cookie").to_owned();
    assert_eq!(right.status, 303);
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains("sesame"), "{cookie}");
    let pair = cookie.split(';').next().unwrap().to_owned();
    let entered = ask(&site, Request::get("/runs").with("cookie", &pair)).await;
    assert_eq!(entered.status, 200);
    // Another server with the same token understands it.
    let other = world.with_token("open-sesame\n");
    assert_eq!(ask(&other, Request::get("/runs").with("cookie", &pair)).await.status, 200);
    let changed = world.with_token("another");
    assert_eq!(ask(&changed, Request::get("/runs").with("cookie", &pair)).await.status, 401);
}

/// The example with names and values replaced by a hostile text.
fn hostile(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    let inside = &quoted[1..quoted.len() - 1];
    // Payloads are JSON within JSON.
    let twice = serde_json::to_string(inside).unwrap();
    let twice = &twice[1..twice.len() - 1];
    let lines = EMISSIONS.lines().map(|line| {
        line.replace("\\\"north\\\"", &format!("\\\"{twice}\\\""))
            .replace("\"north\"", &format!("\"{inside}\""))
            .replace("\\\"eu-west-1\\\"", &format!("\\\"{twice}\\\""))
            .replace("\"eu-west-1\"", &format!("\"{inside}\""))
            .replace("is not one of 1, 3", twice)
            .replace("\"stores\"", &format!("\"{inside}\""))
            .replace("\"compose\"", &format!("\"{inside}\""))
    });
    lines.flat_map(|line| [line, "\n".to_owned()]).collect()
}

async fn all_pages(site: &Site) -> Vec<(String, String)> {
    let mut waiting = vec!["/runs".to_owned()];
    let mut known = waiting.clone();
    let mut pages = Vec::new();
    while let Some(address) = waiting.pop() {
        let response = ask(site, Request::get(&address)).await;
        let body = response.body_text().to_owned();
        assert!(response.status < 500, "{address}: {body}");
        for next in addresses(&body).into_iter().chain([response.header("Location").to_owned()]) {
            if next.starts_with('/') && !known.contains(&next) {
                known.push(next.clone());
                waiting.push(next);
            }
        }
        pages.push((address, body));
    }
    pages
}

#[tokio::test]
async fn script_in_every_name_and_value_is_inert() {
    let evil = "<img src=x onerror=alert(1)>\"'></script><script>evil()</script>{{7*7}}&amp;";
    let world = World::empty();
    world.import(&hostile(evil));
    let site = world.site();
    let pages = all_pages(&site).await;
    assert!(pages.len() > 20, "{}", pages.len());
    assert!(pages.iter().any(|(_, page)| page.contains("&lt;img src=x onerror=alert(1)&gt;")));
    for (address, page) in pages {
        assert!(!page.contains("<img") && !page.contains("<script>"), "{address}");
        assert!(!page.contains("x onerror=alert(1)>"), "{address}");
        assert!(!address.contains("img") && !address.contains('<'), "{address}");
    }
    let response = ask(&site, Request::post("/search/", "q=%3Cscript%3Eevil%28%29")).await;
    assert!(!response.body_text().contains("<script>"), "{}", response.body_text());
}

#[tokio::test]
async fn planted_secrets_are_on_no_page() {
    let world = World::empty();
    // The example has a Secret with this password.
    let (encoded, plain) = ("aHVudGVyMg==", "hunter2");
    assert!(EMISSIONS.contains(encoded), "the example has no secret");
    world.import(EMISSIONS);
    for (address, page) in all_pages(&world.site()).await {
        assert!(!page.contains(encoded) && !page.contains(plain), "{address}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn any_name_is_inert(name in "[<>\"'&/a-z{}=\\\\]{1,20}") {
        let marker = format!("<q9>{name}</q9>");
        let world = World::empty();
        world.import(&hostile(&marker));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let site = world.site();
            for target in ["/runs", "/x", "/runs/9822d93d", "/runs/9822d93d/2", "/runs/6a3ac86e/diff"] {
                let response = ask(&site, Request::get(target)).await;
                assert!(response.status < 500, "{target}");
                assert!(!response.body_text().contains("<q9>"), "{target}");
            }
        });
    }
}
