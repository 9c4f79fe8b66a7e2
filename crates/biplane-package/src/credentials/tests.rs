//! Tests where credentials are found. RT-10

use serde_json::json;

use super::*;

fn of_user(user: &str, password: &str, server: &str) -> Credentials {
    Credentials {
        username: Some(user.into()),
        password: Some(password.into()),
        server_address: Some(server.into()),
        ..Credentials::default()
    }
}

#[test]
fn a_program_for_one_registry_wins_over_the_store_and_the_store_over_the_file() {
    let config = json!({
        "credHelpers": {"gcr.io": "gcloud"},
        "credsStore": "desktop",
        "auths": {"gcr.io": {"auth": "YTpi"}},
    });
    assert_eq!(source(&config, "gcr.io"), Source::Program("gcloud"));
    assert_eq!(source(&config, "quay.io"), Source::Program("desktop"));
    let entry = json!({"auth": "YTpi"});
    let config = json!({"credsStore": "", "auths": {"quay.io": entry}});
    assert_eq!(source(&config, "quay.io"), Source::File(&entry));
    assert_eq!(source(&config, "gcr.io"), Source::Nowhere);
    assert_eq!(source(&json!({}), "gcr.io"), Source::Nowhere);
}

#[test]
fn entries_are_found_by_host_and_the_default_registry_by_its_address() {
    let entry = json!({"auth": "YTpi"});
    for (key, registry) in [
        ("https://index.docker.io/v1/", HUB),
        ("index.docker.io", HUB),
        ("https://registry.example.org/v2/", "registry.example.org"),
        ("localhost:5000", "localhost:5000"),
    ] {
        let config = json!({"auths": {key: entry}});
        assert_eq!(source(&config, registry), Source::File(&entry), "{key}");
    }
}

#[test]
fn an_entry_holds_a_pair_or_tokens() {
    let read = |entry: Value| from_entry(&entry, "r.io").map_err(|e| e.to_string());
    let pair = of_user("me", "a:b", "r.io");
    let encoded = STANDARD.encode("me:a:b");
    assert_eq!(read(json!({"auth": encoded})), Ok(Some(pair.clone())));
    assert_eq!(read(json!({"username": "me", "password": "a:b"})), Ok(Some(pair)));
    let tokens = read(json!({"identitytoken": "i", "registrytoken": "r"})).unwrap().unwrap();
    assert_eq!(tokens.identity_token.as_deref(), Some("i"));
    assert_eq!(tokens.registry_token.as_deref(), Some("r"));
    assert_eq!(read(json!({})), Ok(None), "left behind by those who use a program");
    let error = read(json!({"auth": "c2VjcmV0"})).unwrap_err();
    assert_eq!(error, "the credentials of r.io are malformed", "it does not show them");
}

#[test]
fn a_program_answers_with_a_pair_or_a_token() {
    let read = |answer: Value| from_answer(&answer.to_string(), "r.io").unwrap();
    let answer = json!({"ServerURL": "r.io", "Username": "me", "Secret": "s"});
    assert_eq!(read(answer), Some(of_user("me", "s", "r.io")));
    let token = read(json!({"Username": "<token>", "Secret": "s"})).unwrap();
    assert_eq!((token.identity_token.as_deref(), token.username), (Some("s"), None));
    assert_eq!(read(json!({})), None);
    assert!(from_answer("secret", "r.io").is_err_and(|e| !e.to_string().contains("secret")));
}

#[tokio::test]
async fn a_program_that_is_missing_or_no_program_is_an_error() {
    let error = ask("there-is-no-such-program", "r.io").await.unwrap_err();
    let want = "cannot ask docker-credential-there-is-no-such-program for the credentials of r.io";
    assert_eq!(error.to_string(), want);
    assert!(ask("../../bin/sh", "r.io").await.is_err());
}

#[tokio::test]
async fn a_broken_file_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    std::fs::write(&file, "{\"auths\": hunter2}").unwrap();
    let error = find(Some(&file), "r.io").await.unwrap_err();
    assert!(!format!("{error:#}").contains("hunter2"), "{error:#}");
    assert!(matches!(find(None, "r.io").await, Ok(None)));
}
