//! Follows the objects of one kind: a list, then every change, then again after a gap.
//!
//! A server that can sends the list as the beginning of the watch. Otherwise the list is asked for
//! in pages. A connection that ends is resumed at the last version; when the server does not have
//! it any more, everything is listed anew.

use std::sync::{Arc, Weak};
use std::time::Duration;

use biplane_cluster::{Form, Query, ReadError};
use biplane_model::{Object, Value};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};

use super::{Hub, Item, Phase, Via, Watch};
use crate::api::{Api, Call, Stream};
use crate::failure::{Failure, Refusal};
use crate::kinds::{Kind, encoded, nullable};
use crate::metrics;
use crate::transport::reason;

/// What a server says for a moment about a kind that was just defined.
const NEW_KIND: &str = "storage is (re)initializing";
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// A server answers a watch at once.
const BEGIN: Duration = Duration::from_secs(30);
/// The server ends a watch after this time, and we begin the next. It sends bookmarks every minute.
const LASTS: Duration = Duration::from_mins(5);
/// A watch that says nothing for so long is dead.
const SILENCE: Duration = Duration::from_mins(6);
/// Objects per page of a list.
const PAGE: usize = 500;
/// The bookmark after the initial events has this annotation.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
const EVENTS: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
pub(crate) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// How a connection of a watch ended.
#[derive(Debug)]
enum End {
    /// As agreed. Go on at the last version.
    Done,
    /// The server does not have the last version any more.
    Expired,
    /// It failed.
    Failed(Failure),
}

/// The query of a list or watch, as part of a path.
pub(crate) fn selection(query: &Query) -> String {
    let equal = query.labels.iter().map(|(name, value)| format!("{name}={value}"));
    let labels: Vec<String> = equal.chain(query.labelled.iter().cloned()).collect();
    let mut parameters = Vec::new();
    if !labels.is_empty() {
        parameters.push(format!("labelSelector={}", encoded(&labels.join(","))));
    }
    if !query.name.is_empty() {
        parameters
            .push(format!("fieldSelector={}", encoded(&format!("metadata.name={}", query.name))));
    }
    parameters.join("&")
}

/// An object of a list or an event. Items of lists do not name their kind, and metadata names
/// another.
pub(crate) fn item(value: Value, kind: &Kind) -> Option<Object> {
    let mut object = Object::from_value(value)?;
    let map = object.make_mut();
    map.insert("apiVersion".into(), kind.gvk.api_version().into());
    map.insert("kind".into(), kind.gvk.kind.clone().into());
    Some(object)
}

/// A list, as a server sends it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Listed {
    pub(crate) metadata: ListMeta,
    #[serde(deserialize_with = "nullable")]
    pub(crate) items: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ListMeta {
    pub(crate) resource_version: String,
    pub(crate) r#continue: String,
}

/// The type and the object of an event, if its line has the usual form.
fn parts(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let (r#type, rest) = rest.split_at_checked(memchr::memchr(b'"', rest)?)?;
    Some((r#type, rest.strip_prefix(br#"","object":"#)?.strip_suffix(b"}")?))
}

/// A line of a watch.
#[derive(Deserialize)]
struct Event {
    r#type: String,
    object: Value,
}

/// Follows the objects until it makes no sense any more. Returns why.
pub(super) async fn run(hub: &Weak<Hub>, watch: &Arc<Watch>) -> Option<ReadError> {
    let mut wait = FIRST_WAIT;
    let mut expired = Duration::ZERO;
    let mut listed = false;
    let mut streaming = true;
    // The hub owns this task. It must be possible to drop the hub.
    let api = Arc::clone(&hub.upgrade()?.api);
    let follower = Follower { hub: Weak::clone(hub), api, watch };
    loop {
        let begun = Instant::now();
        let end = match (listed, streaming) {
            (true, _) => follower.resume().await,
            (false, true) => follower.stream_list(&mut listed).await,
            (false, false) => follower.pages(&mut listed).await,
        };
        if begun.elapsed() > LONGEST_WAIT {
            (wait, expired) = (FIRST_WAIT, Duration::ZERO);
        }
        let failure = match end {
            End::Done => {
                // A server that ends watches at once must not be asked at once.
                if begun.elapsed() < FIRST_WAIT {
                    sleep(FIRST_WAIT).await;
                }
                wait = FIRST_WAIT;
                continue;
            }
            End::Expired => {
                follower.count("expired");
                listed = false;
                // A server that forgets again and again must not be asked for lists without a break.
                sleep(expired).await;
                expired = (expired * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
                continue;
            }
            End::Failed(failure) => failure,
        };
        if listed {
            follower.count("error");
        }
        match follower.verdict(&failure, streaming && !listed).await {
            Verdict::ListDifferently => {
                tracing::debug!(kind = %watch.kind.gvk, "the server does not stream lists");
                streaming = false;
                continue;
            }
            Verdict::GiveUp(error) => return Some(error),
            Verdict::TryAgain => {}
        }
        let asked = match &failure {
            Failure::Refused(refusal) => refusal.after,
            _ => Duration::ZERO,
        };
        // The first failure in a row is worth a look.
        if wait == FIRST_WAIT {
            let error = ReadError::from(failure);
            let (kind, text) = (&watch.kind.gvk, "a watch failed and is tried again");
            if error.to_string().contains(NEW_KIND) {
                tracing::debug!(%kind, %error, "{text}");
            } else {
                tracing::warn!(%kind, %error, "{text}");
            }
        }
        sleep(wait.max(asked)).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

enum Verdict {
    TryAgain,
    ListDifferently,
    GiveUp(ReadError),
}

struct Follower<'a> {
    hub: Weak<Hub>,
    api: Arc<Api>,
    watch: &'a Arc<Watch>,
}

impl Follower<'_> {
    fn count(&self, reason: &'static str) {
        let labels = metrics::Watch { resource: self.watch.kind.resource(), reason };
        self.api.counters.restarts.get_or_create(&labels).inc();
    }

    /// Decides what to do after a failure.
    async fn verdict(&self, failure: &Failure, streamed: bool) -> Verdict {
        let error = ReadError::from(failure.clone());
        let starting = matches!(*self.watch.phase.borrow(), Phase::Starting(_));
        if let Failure::Refused(refusal) = failure {
            if streamed && matches!(refusal.code, 400 | 422) {
                return Verdict::ListDifferently;
            }
            if refusal.code == 404 {
                let Some(hub) = self.hub.upgrade() else { return Verdict::GiveUp(error) };
                let gvk = &self.watch.kind.gvk;
                hub.kinds.forget(&gvk.group);
                match hub.kinds.of(&self.api, gvk, Instant::now() + BEGIN).await {
                    // The CustomResourceDefinition is gone.
                    Err(unknown @ Failure::UnknownKind(_)) => {
                        return Verdict::GiveUp(unknown.into());
                    }
                    // The kind has another resource now.
                    Ok(kind) if kind != self.watch.kind => return Verdict::GiveUp(error),
                    _ => {}
                }
            }
            // Whoever wants to subscribe must know. A watch that runs may be permitted again.
            if starting && matches!(refusal.code, 400 | 401 | 403 | 405 | 422) {
                return Verdict::GiveUp(error);
            }
        }
        if starting {
            self.watch.phase.send_replace(Phase::Starting(Some(error)));
        }
        Verdict::TryAgain
    }

    fn call(&self, parameters: &str) -> Call {
        let Watch { kind, query, form, .. } = &**self.watch;
        let selection = selection(query);
        let between = if selection.is_empty() { "" } else { "&" };
        let path = kind.collection(&query.namespace);
        let path = format!("{path}?{selection}{between}{parameters}");
        let mut call = Call::get("watch", kind.resource(), path);
        call.accept = match form {
            Form::Whole => EVENTS,
            Form::Metadata => METADATA,
        };
        call
    }

    fn watch_call(&self, parameters: &str) -> Call {
        let seconds = LASTS.as_secs();
        self.call(&format!(
            "watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}{parameters}"
        ))
    }

    /// A list at the beginning of a watch, and then the watch.
    async fn stream_list(&self, listed: &mut bool) -> End {
        let began = Instant::now();
        let call = self.watch_call("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
        let stream = match self.api.stream(&call, began + BEGIN).await {
            Ok(stream) => stream,
            Err(failure) => return End::Failed(failure),
        };
        self.watch.cache().begin();
        self.follow(stream, Some(began), listed).await
    }

    /// A list in pages.
    async fn pages(&self, listed: &mut bool) -> End {
        let began = Instant::now();
        self.watch.cache().begin();
        let mut next = String::new();
        let version = loop {
            let mut call = self.call(&format!("limit={PAGE}&continue={}", encoded(&next)));
            call.verb = "list";
            if self.watch.form == Form::Metadata {
                call.accept = METADATA_LIST;
            }
            let answer = match self.api.call(&call, Instant::now() + BEGIN).await {
                Ok(answer) => answer,
                Err(Failure::Refused(refusal)) if refusal.is_expired() => return End::Expired,
                Err(failure) => return End::Failed(failure),
            };
            let page: Listed = match serde_json::from_slice(&answer.body) {
                Ok(page) => page,
                Err(error) => return End::Failed(Failure::Garbled(error.to_string())),
            };
            {
                let mut cache = self.watch.cache();
                for object in page.items.into_iter().filter_map(|i| item(i, &self.watch.kind)) {
                    cache.put(&Item::new(&object, None), Via::Watch);
                }
            }
            next = page.metadata.r#continue;
            if next.is_empty() {
                break page.metadata.resource_version;
            }
        };
        self.finish(&version, began);
        *listed = true;
        self.resume().await
    }

    fn finish(&self, version: &str, began: Instant) {
        self.watch.cache().finish(version, began);
        self.watch.phase.send_replace(Phase::Synced);
    }

    /// A watch from the last version.
    async fn resume(&self) -> End {
        let version = self.watch.cache().version().to_owned();
        let call = self.watch_call(&format!("&resourceVersion={}", encoded(&version)));
        match self.api.stream(&call, Instant::now() + BEGIN).await {
            Ok(stream) => self.follow(stream, None, &mut true).await,
            Err(Failure::Refused(refusal)) if refusal.is_expired() => End::Expired,
            Err(failure) => End::Failed(failure),
        }
    }

    /// Reads a watch to its end. `began` is when its list began, if it has one.
    async fn follow(&self, mut stream: Stream, began: Option<Instant>, listed: &mut bool) -> End {
        let mut unread = Vec::new();
        loop {
            let data = match timeout(SILENCE, stream.body.frame()).await {
                Err(_) => return End::Failed(Failure::TimedOut),
                Ok(None) if *listed => return End::Done,
                Ok(None) => {
                    let text = "the list ended before it was complete";
                    return End::Failed(Failure::Garbled(text.into()));
                }
                Ok(Some(Err(error))) => {
                    return End::Failed(Failure::Unreachable(reason(&error)));
                }
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            };
            unread.extend_from_slice(&data);
            let mut read = 0;
            while let Some(length) = memchr::memchr(b'\n', &unread[read..]) {
                let line = &unread[read..read + length];
                read += length + 1;
                if let Err(end) = self.line(line, began, listed) {
                    return end;
                }
            }
            unread.drain(..read);
        }
    }

    fn line(&self, line: &[u8], began: Option<Instant>, listed: &mut bool) -> Result<(), End> {
        if line.is_empty() {
            return Ok(());
        }
        // Most events are the echoes of own writes. They are not worth more than a look.
        if self.watch.form == Form::Whole
            && let Some((r#type, text)) = parts(line)
            && matches!(r#type, b"ADDED" | b"MODIFIED" | b"DELETED")
            && let Some(item) = Item::peek(text, &self.watch.kind.gvk)
        {
            self.take(&item, r#type == b"DELETED", *listed);
            return Ok(());
        }
        let garbled = |text: String| End::Failed(Failure::Garbled(text));
        let event: Event =
            serde_json::from_slice(line).map_err(|error| garbled(error.to_string()))?;
        if event.r#type == "ERROR" {
            let refusal = Refusal::of_event(event.object.to_string().as_bytes());
            // After any other error it is not certain that nothing was missed.
            return Err(match refusal.code {
                429 => End::Failed(Failure::Refused(refusal)),
                _ if *listed => End::Expired,
                _ => End::Failed(Failure::Refused(refusal)),
            });
        }
        let object = item(event.object, &self.watch.kind)
            .ok_or_else(|| garbled("an event without an object".into()))?;
        if event.r#type == "BOOKMARK" {
            let version = object.resource_version();
            let ends = object.annotation(INITIAL_EVENTS_END) == "true";
            match began {
                Some(began) if ends && !*listed => {
                    self.finish(version, began);
                    *listed = true;
                }
                // An old server ignores that a list is wanted.
                Some(_) if !*listed => {
                    let text = "the server does not stream lists".to_owned();
                    return Err(End::Failed(Failure::Refused(Refusal::invalid(text))));
                }
                _ => self.watch.cache().set_version(version),
            }
            return Ok(());
        }
        self.take(&Item::new(&object, None), event.r#type == "DELETED", *listed);
        Ok(())
    }

    /// Takes the object of an event.
    fn take(&self, item: &Item<'_>, is_gone: bool, listed: bool) {
        let changed = {
            let mut cache = self.watch.cache();
            let changed = if is_gone {
                cache.gone(item);
                true
            } else {
                cache.put(item, Via::Watch)
            };
            // The event itself is not in the past yet.
            if listed {
                cache.set_version(&item.resource_version);
            }
            changed
        };
        if listed && changed {
            self.learn(item.name.name());
        }
    }

    /// A CustomResourceDefinition that changed makes what is known of its group old.
    fn learn(&self, name: &str) {
        let gvk = &self.watch.kind.gvk;
        if gvk.kind == "CustomResourceDefinition"
            && gvk.group == "apiextensions.k8s.io"
            && let Some((_, group)) = name.split_once('.')
            && let Some(hub) = self.hub.upgrade()
        {
            hub.kinds.forget(group);
        }
    }
}
