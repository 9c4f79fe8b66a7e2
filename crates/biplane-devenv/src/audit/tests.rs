//! Tests of counting requests, with lines as an API server writes them.

use std::io::Write;

use super::*;

struct Log {
    dir: tempfile::TempDir,
    log: AuditLog,
}

impl Log {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = AuditLog::new(dir.path().join("audit.log"));
        Self { dir, log }
    }

    fn write(&self, text: &str) {
        let path = self.dir.path().join("audit.log");
        let mut file = File::options().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

fn line(id: &str, stage: &str, verb: &str, uri: &str) -> String {
    format!(
        r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"{id}","stage":"{stage}","requestURI":"{uri}","verb":"{verb}","user":{{"username":"ada","groups":["system:authenticated"]}},"sourceIPs":["127.0.0.1"],"userAgent":"test","objectRef":{{"resource":"pods","namespace":"n","name":"p","apiGroup":"g","apiVersion":"v1","subresource":"status"}},"responseStatus":{{"metadata":{{}},"code":200}},"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z","stageTimestamp":"2026-01-01T00:00:00.000000Z"}}
"#
    )
}

#[test]
fn a_line_becomes_a_request() {
    let log = Log::new();
    log.write(&line("1", "ResponseComplete", "patch", "/apis/g/v1/x?dryRun=All&force=true"));
    let requests = log.log.requests().unwrap();
    let expected = AuditedRequest {
        id: "1".into(),
        user: "ada".into(),
        verb: "patch".into(),
        group: "g".into(),
        resource: "pods/status".into(),
        namespace: "n".into(),
        name: "p".into(),
        code: 200,
        uri: "/apis/g/v1/x?dryRun=All&force=true".into(),
        user_agent: "test".into(),
        received: "2026-01-01T00:00:00.000000Z".into(),
        dry_run: true,
        complete: true,
    };
    assert_eq!(requests, Requests(vec![expected]));
    assert_eq!(requests.to_string(), "     1 ada patch pods/status 200\n");
    assert!(requests.writes().is_empty(), "a dry run writes nothing");
}

#[test]
fn requests_without_a_resource_count_too() {
    let log = Log::new();
    log.write("{\"auditID\":\"1\",\"stage\":\"ResponseComplete\",\"requestURI\":\"/version\",\"verb\":\"get\",\"user\":{}}\n");
    assert_eq!(
        log.log.requests().unwrap().tally(),
        BTreeMap::from([((String::new(), "get".into(), String::new(), 0), 1)])
    );
}

#[test]
fn a_watch_counts_once_and_when_it_begins() {
    let log = Log::new();
    log.write(&line("w", "ResponseStarted", "watch", "/api/v1/pods?watch=true"));
    log.write(&line("1", "ResponseComplete", "get", "/"));
    let open = log.log.requests().unwrap();
    assert_eq!(open.count(), 2);
    assert!(!open.iter().next().unwrap().complete);

    let mark = log.log.mark().unwrap();
    log.write(&line("w", "ResponseComplete", "watch", "/api/v1/pods?watch=true"));
    let all = log.log.requests().unwrap();
    assert_eq!(all.count(), 2);
    assert!(all.iter().all(|request| request.complete));
    assert!(log.log.requests_since(&mark).unwrap().is_empty());
}

#[test]
fn only_what_follows_the_mark_counts() {
    let log = Log::new();
    let before = log.log.mark().unwrap();
    log.write(&line("1", "ResponseComplete", "get", "/"));
    let between = log.log.mark().unwrap();
    log.write(&line("2", "ResponseComplete", "list", "/"));
    let other = log.dir.path().join("other.log");
    log.log.add(other.clone());
    std::fs::write(other, line("3", "ResponseComplete", "create", "/")).unwrap();

    assert_eq!(log.log.requests_since(&before).unwrap().count(), 3);
    let since = log.log.requests_since(&between).unwrap();
    assert_eq!(since.iter().map(|r| r.id.as_str()).collect::<Vec<_>>(), ["2", "3"]);
    assert_eq!(since.clone().of_verbs(&["list", "watch"]).count(), 1);
    assert_eq!(since.writes().count(), 1);
}

#[test]
fn a_line_that_is_being_written_waits() {
    let log = Log::new();
    let text = line("1", "ResponseComplete", "get", "/");
    let (first, rest) = text.split_at(40);
    log.write(first);
    assert!(log.log.requests().unwrap().is_empty());
    let mark = log.log.mark().unwrap();
    log.write(rest);
    assert_eq!(log.log.requests_since(&mark).unwrap().count(), 1);
}

#[test]
fn a_line_that_is_not_an_event_is_an_error() {
    let log = Log::new();
    log.write(&line("1", "ResponseComplete", "get", "/"));
    log.write("garbage\n");
    let error = log.log.requests().unwrap_err();
    assert!(matches!(error, EnvError::AuditLog { line: 2, .. }), "{error}");
}
