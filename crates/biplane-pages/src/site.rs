//! The site: who may ask, what is answered, and within which limits.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use biplane_function::server;
use biplane_recorder::api;
use biplane_recorder::query::archive::Error;
use biplane_recorder::query::stored::Stored;
use jiff::Timestamp;
use tokio::sync::Semaphore;

use crate::http::{Body, Request, Response};
use crate::layout::{self, Page, Reader, Theme};
use crate::live::News;
use crate::page::failure::{self, Failure};
use crate::router::{self, Context, Reply};
use crate::token::{COOKIE, Token};

/// How many requests read the store at a time.
const READERS: usize = 4;
/// How long a request may read unless told otherwise, and how much.
pub const PATIENCE: Duration = Duration::from_secs(5);
const LARGEST: usize = 16 * 1024 * 1024;
/// How often the store is asked for news while somebody follows.
const NEWS: Duration = Duration::from_secs(1);
/// How many runs are asked for at a time.
const NEWS_RUNS: usize = 200;

/// Nothing but the site's own files, and nobody may put it into a frame.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What else is served at the same address: metrics and probes.
pub type Extra = dyn Fn(&str) -> Option<server::Page> + Send + Sync;

/// What a site needs.
#[derive(Clone)]
pub struct Options {
    /// Names beside the addresses of the machine itself by which it may be asked.
    pub allowed: Vec<String>,
    /// What readers must know. Without one, everybody who reaches the address may read.
    pub token: Option<Token>,
    /// Whether connections are encrypted, so that cookies need not travel otherwise.
    pub is_secure: bool,
    /// Opens the store.
    pub open: Arc<dyn Fn() -> Result<Stored, Error> + Send + Sync>,
    /// The clock.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Why nothing is stored, if that is so.
    pub trouble: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// What else is served.
    pub extra: Arc<Extra>,
    /// How long a request may read.
    pub patience: Duration,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

/// The site. Clones share everything.
#[derive(Clone, Debug)]
pub struct Site {
    options: Arc<Options>,
    free: Arc<Mutex<Vec<Stored>>>,
    readers: Arc<Semaphore>,
    news: News,
}

/// What work with a store comes to, and whether the store can be used again.
type Done<T> = (T, bool);

impl Site {
    /// Makes a site.
    pub fn new(options: Options) -> Self {
        Self {
            options: Arc::new(options),
            free: Arc::default(),
            readers: Arc::new(Semaphore::new(READERS)),
            news: News::default(),
        }
    }

    /// Answers a request.
    pub async fn answer(&self, request: Request) -> Response {
        let begun = Instant::now();
        let place = place(request.path());
        let method = request.method.clone();
        let response = self.respond(request).await;
        if !matches!(place, "assets" | "metrics" | "healthz" | "readyz") {
            // Addresses have ids, but people type anything: only known words are logged.
            let milliseconds = begun.elapsed().as_millis();
            let status = response.status;
            tracing::info!(method, page = place, status, milliseconds, "Answered");
        }
        secured(response, place == "assets")
    }

    async fn respond(&self, request: Request) -> Response {
        let path = request.path().to_owned();
        let is_post = request.method == "POST";
        if !is_post && !matches!(request.method.as_str(), "GET" | "HEAD") {
            return Response::text(405, "method not allowed\n").with("Allow", "GET, HEAD, POST");
        }
        if !is_post && let Some(page) = (self.options.extra)(&path) {
            return Response::of(page.status, page.content_type, page.body);
        }
        let host = request.header("host");
        if !api::is_own_host(host) && !self.is_allowed(host) {
            return Response::text(403, "this name of the server is not known\n");
        }
        if let Some(asset) = asset(&path) {
            return asset;
        }
        if is_post && !is_from_here(&request) {
            return Response::text(403, "forms of other sites are not accepted\n");
        }
        let reader = Reader {
            theme: Theme::of_name(request.cookie("theme")),
            address: request.target.clone(),
            warnings: None,
        };
        if let Some(token) = &self.options.token {
            if is_post && path == "/token" {
                return self.enter(token, &request, &reader);
            }
            if !token.allows(&request) {
                return refused(&path, &reader);
            }
        }
        match path.as_str() {
            "/theme" if is_post => theme(&request),
            "/token" => Response::redirect("/"),
            "/events" if !is_post => self.events(&request).await,
            _ if path.starts_with("/api/") && !is_post => self.api(request).await,
            _ => self.page(request, reader).await,
        }
    }

    /// Whether a `Host` header, with or without its port, is a name that was told.
    fn is_allowed(&self, host: &str) -> bool {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let is = |allowed: &String| {
            allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(name)
        };
        self.options.allowed.iter().any(is)
    }

    /// Takes the token from its form.
    fn enter(&self, token: &Token, request: &Request, reader: &Reader) -> Response {
        if !token.is(&request.field("token")) {
            return Response::html(401, failure::token_form(true).render(reader));
        }
        let secure = if self.options.is_secure { "; Secure" } else { "" };
        let cookie = format!(
            "{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000{secure}",
            token.cookie()
        );
        Response::redirect("/").with("Set-Cookie", cookie)
    }

    /// Works with a store on a thread of its own, when one of the readers is free.
    async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stored) -> Done<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let slow = || Failure::TooMuch("the answer takes too long".to_owned());
        let permit = Arc::clone(&self.readers).acquire_owned();
        let patience = self.options.patience;
        let permit = tokio::time::timeout(patience, permit).await.map_err(|_| slow())?;
        let site = self.clone();
        let working = tokio::task::spawn_blocking(move || -> Result<T, Failure> {
            let _permit = permit;
            let free = || site.free.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = free().pop();
            let stored = match kept {
                Some(stored) => stored,
                None => (site.options.open)().map_err(Failure::from)?,
            };
            stored.store().limit(Instant::now() + patience, LARGEST);
            let (done, is_fine) = work(&stored);
            // What failed may be broken.
            if is_fine {
                free().push(stored);
            }
            Ok(done)
        });
        // Drawing can take longer than reading may; its reader is free when it ends.
        match tokio::time::timeout(2 * patience, working).await {
            Err(_) => Err(slow()),
            Ok(Err(_)) => Err(Failure::Broken("the page could not be made".to_owned())),
            Ok(Ok(done)) => done,
        }
    }

    async fn page(&self, request: Request, mut reader: Reader) -> Response {
        let (now, trouble) = ((self.options.now)(), (self.options.trouble)());
        let done = self.with_store(move |stored| {
            let context = Context::new(stored, now, trouble);
            let routed = router::route(&context, &request);
            let warnings = router::open_warnings(&context);
            let is_fine = !matches!(routed, Err(Failure::Broken(_)));
            (routed.map(|routed| (routed, warnings)), is_fine)
        });
        let routed = done.await.and_then(|routed| routed);
        let routed = routed.map(|(routed, warnings)| {
            reader.warnings = warnings;
            routed
        });
        match routed {
            Ok(Reply::Page(page)) => Response::html(200, page.render(&reader)),
            Ok(Reply::Redirect(target)) => Response::redirect(&target),
            Err(failure) => {
                let page: Page = failure.page();
                Response::html(failure.status(), page.render(&reader))
            }
        }
    }

    async fn api(&self, request: Request) -> Response {
        let now = (self.options.now)();
        let done = self.with_store(move |stored| {
            let page = api::page(stored, &request.target, now);
            let is_fine = page.as_ref().is_none_or(|page| page.status < 500);
            (page, is_fine)
        });
        match done.await {
            Ok(Some(page)) => Response::of(page.status, page.content_type, page.body),
            Ok(None) => Response::text(404, "404 page not found\n"),
            Err(failure) => {
                let message = match &failure {
                    Failure::TooMuch(text) | Failure::Version(text) | Failure::Broken(text) => text,
                    _ => "the question was not answered",
                };
                let body = serde_json::json!({"error": {"reason": "failed", "message": message}});
                Response::of(failure.status(), "application/json", body.to_string())
            }
        }
    }

    async fn events(&self, request: &Request) -> Response {
        let text = request.query("f").unwrap_or_default().to_owned();
        let since = request.query("since").or(Some(request.header("last-event-id")));
        let since = since.and_then(|since| since.parse().ok());
        let now = (self.options.now)();
        let begun = self.with_store(move |stored| {
            let newest = stored.store().newest_run();
            let is_fine = newest.is_ok();
            let filter = router::run_filter(&Context::new(stored, now, None), &text);
            (newest.map_err(Failure::from).and_then(|newest| Ok((newest, filter?))), is_fine)
        });
        let (newest, filter) = match begun.await.and_then(|begun| begun) {
            Ok(begun) => begun,
            Err(failure) => return Response::text(failure.status(), "there are no news\n"),
        };
        if !self.news.has_readers() {
            self.news.begin(newest.unwrap_or_default());
        }
        match self.news.follow(since, filter) {
            None => Response::text(503, "too many readers\n"),
            Some(events) => {
                self.poll();
                let response = Response::of(200, "text/event-stream", "");
                Response { body: Body::Stream(events), ..response }
            }
        }
    }

    /// Asks the store for news while somebody follows.
    fn poll(&self) {
        if !self.news.start() {
            return;
        }
        let site = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(NEWS).await;
                if !site.news.has_readers() {
                    site.news.stop();
                    // Somebody may have come in between.
                    if !(site.news.has_readers() && site.news.start()) {
                        return;
                    }
                }
                site.look_for_news().await;
            }
        });
    }

    /// Asks the store for news once.
    pub async fn look_for_news(&self) {
        let newest = self.news.newest();
        let found = self.with_store(move |stored| {
            let rows = stored.store().runs_stored_after(newest, NEWS_RUNS);
            let heads = rows.map_err(Error::from).and_then(|rows| {
                rows.iter().map(|row| stored.head(row)).collect::<Result<Vec<_>, _>>()
            });
            let is_fine = heads.is_ok();
            (heads, is_fine)
        });
        match found.await {
            Ok(Ok(heads)) => self.news.tell(heads),
            Ok(Err(error)) => tracing::debug!(%error, "cannot look for news"),
            Err(failure) => tracing::debug!(?failure, "cannot look for news"),
        }
    }
}

/// The first word of a path, if it is one of ours.
fn place(path: &str) -> &'static str {
    const PLACES: [&str; 18] = [
        "api", "assets", "changes", "compare", "events", "healthz", "help", "metrics", "r",
        "readyz", "runs", "search", "status", "theme", "token", "warnings", "why", "x",
    ];
    let first = path.split('/').nth(1).unwrap_or_default();
    if first.is_empty() {
        return "start";
    }
    PLACES.into_iter().find(|place| *place == first).unwrap_or("other")
}

fn asset(path: &str) -> Option<Response> {
    let asset = |kind: &str, text: &str| Some(Response::of(200, kind, text));
    match path {
        layout::ICON_PATH => asset("image/svg+xml", layout::ICON),
        path if path == *layout::CSS_PATH => asset("text/css; charset=utf-8", &layout::CSS),
        path if path == *layout::SCRIPT_PATH => {
            asset("text/javascript; charset=utf-8", layout::SCRIPT)
        }
        _ => None,
    }
}

/// Whether a form was sent from a page of this site. Browsers tell; other programs need not.
fn is_from_here(request: &Request) -> bool {
    let (site, origin) = (request.header("sec-fetch-site"), request.header("origin"));
    if !site.is_empty() {
        return matches!(site, "same-origin" | "none");
    }
    let host = request.header("host");
    let is_own = |origin: &str| origin.split_once("://").is_some_and(|(_, name)| name == host);
    origin.is_empty() || is_own(origin)
}

fn refused(path: &str, reader: &Reader) -> Response {
    if path.starts_with("/api/") || path == "/events" {
        let body = r#"{"error":{"reason":"unauthorized","message":"a token is needed"}}"#;
        return Response::of(401, "application/json", body).with("WWW-Authenticate", "Bearer");
    }
    Response::html(401, failure::token_form(false).render(reader))
        .with("WWW-Authenticate", "Bearer")
}

/// Keeps the colours that the reader chose, and goes back to where the reader was.
fn theme(request: &Request) -> Response {
    let theme = Theme::of_name(&request.field("theme"));
    let back = request.field("back");
    // Browsers ignore some control characters, and what is left may name another site.
    let is_odd = |c: char| c == '\\' || c.is_control();
    let is_own = back.starts_with('/') && !back.starts_with("//") && !back.contains(is_odd);
    let cookie = format!("theme={}; Path=/; Max-Age=31536000; SameSite=Strict", theme.name());
    Response::redirect(if is_own { &back } else { "/" }).with("Set-Cookie", cookie)
}

/// Adds what every answer has.
fn secured(response: Response, is_asset: bool) -> Response {
    // The name of an asset changes with its content.
    let is_kept = is_asset && response.status == 200;
    let cache = if is_kept { "public, max-age=31536000, immutable" } else { "no-store" };
    response
        .with("Cache-Control", cache)
        .with("Content-Security-Policy", POLICY)
        .with("Referrer-Policy", "no-referrer")
        .with("X-Content-Type-Options", "nosniff")
        .with("X-Frame-Options", "DENY")
        .with("Cross-Origin-Opener-Policy", "same-origin")
        .with("Cross-Origin-Resource-Policy", "same-origin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_only_words_that_are_known() {
        for (path, want) in [
            ("/", "start"),
            ("/runs/9822d93d", "runs"),
            ("/api/v1/run", "api"),
            ("/north", "other"),
            ("", "start"),
            ("runs", "start"),
        ] {
            assert_eq!(place(path), want, "{path}");
        }
    }

    #[test]
    fn forms_come_from_pages_of_this_site() {
        let post = || Request::post("/theme", "").with("host", "localhost:1");
        assert!(is_from_here(&post()), "a program");
        assert!(is_from_here(&post().with("origin", "http://localhost:1")));
        for origin in ["null", "http://localhost:2", "https://evil.example.com"] {
            assert!(!is_from_here(&post().with("origin", origin)), "{origin}");
        }
        // Without a referrer, browsers say `null`, but also where the form was.
        let own = post().with("origin", "null").with("sec-fetch-site", "same-origin");
        assert!(is_from_here(&own));
    }
}
