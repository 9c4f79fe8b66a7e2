//! Tests how a server ends.

use std::sync::Mutex;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

use super::*;

/// Runs a server of health checks, with one peer that never says anything and one that watches, and
/// returns how long the server takes to end, in seconds.
async fn ends_after(
    stop: impl Future<Output = ()> + Send + 'static,
    at_once: impl Future<Output = ()> + Send + 'static,
) -> u64 {
    let listener = Listener::bind(Network::Tcp, "127.0.0.1:0").await.unwrap();
    let address = listener.tcp_address().unwrap();
    let limits = Limits::default();
    let (told, telling) = oneshot::channel::<()>();
    let server = tokio::spawn(async move {
        let (_reporter, health) = tonic_health::server::health_reporter();
        let router = builder(&limits).add_service(health);
        let stop = async {
            telling.await.unwrap();
            stop.await;
        };
        run(listener, None, &limits, stop, at_once, |incoming, stopping| {
            router.serve_with_incoming_shutdown(incoming, stopping)
        })
        .await
    });
    let mut silent = TcpStream::connect(address).await.unwrap();
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut health = HealthClient::new(channel.connect().await.unwrap());
    let watch = health.watch(HealthCheckRequest::default()).await.unwrap();
    let mut watch = watch.into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let begun = Instant::now();
    told.send(()).unwrap();
    let served = server.await.unwrap();
    assert!(served.is_some_and(|served| served.is_ok()), "it had to be given up");
    // Both peers notice it.
    assert!(watch.message().await.is_err());
    assert!(silent.read(&mut [0; 64]).await.map_or(true, |read| read < 64));
    begun.elapsed().as_secs()
}

const SETTINGS: u8 = 4;
const PING: u8 = 6;

/// A peer of a server of health checks that has said that it speaks HTTP/2, and nothing more.
async fn peer(limits: Limits) -> TcpStream {
    let listener = Listener::bind(Network::Tcp, "127.0.0.1:0").await.unwrap();
    let address = listener.tcp_address().unwrap();
    tokio::spawn(async move {
        let (_reporter, health) = tonic_health::server::health_reporter();
        let router = builder(&limits).add_service(health);
        let never = std::future::pending;
        run(listener, None, &limits, never(), never(), |incoming, stopping| {
            router.serve_with_incoming_shutdown(incoming, stopping)
        })
        .await
    });
    let mut peer = TcpStream::connect(address).await.unwrap();
    peer.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    peer
}

/// The type and the content of the next frame of HTTP/2, or `None` at the end of the connection.
async fn frame(peer: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 9];
    peer.read_exact(&mut header).await.ok()?;
    let mut content = vec![0; usize::from(header[2])];
    peer.read_exact(&mut content).await.ok()?;
    Some((header[3], content))
}

#[tokio::test]
async fn a_peer_is_told_how_many_calls_it_may_make_at_the_same_time() {
    const MAX_CONCURRENT_STREAMS: u16 = 3;
    let mut peer = peer(Limits::default()).await;
    let (kind, settings) = frame(&mut peer).await.unwrap();
    assert_eq!(kind, SETTINGS, "they come first");
    let (settings, _) = settings.as_chunks::<6>();
    let value = settings.iter().find_map(|[a, b, value @ ..]| {
        let is_it = u16::from_be_bytes([*a, *b]) == MAX_CONCURRENT_STREAMS;
        is_it.then(|| u32::from_be_bytes(*value))
    });
    assert_eq!(value, Some(256));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_gives_no_sign_of_life_is_left() {
    let limits = Limits { first_call: Duration::from_hours(1), ..Limits::default() };
    let begun = Instant::now();
    let mut peer = peer(limits).await;
    let mut asked = None;
    while let Some((kind, _)) = frame(&mut peer).await {
        if kind == PING {
            asked.get_or_insert(begun.elapsed().as_secs());
        }
    }
    assert_eq!((asked, begun.elapsed().as_secs()), (Some(60), 80));
}

/// The clock is paused and advances only when nothing else is to be done.
#[tokio::test(start_paused = true)]
async fn a_server_ends_in_time_whatever_is_open() {
    assert_eq!(ends_after(async {}, std::future::pending()).await, 10);
}

#[tokio::test(start_paused = true)]
async fn a_server_ends_at_once_when_told_twice() {
    let twice = Arc::new(Mutex::new(0));
    let (first, second) = (twice.clone(), twice.clone());
    let stop = async move { *first.lock().unwrap() += 1 };
    let at_once = poll_fn(move |context| {
        if *second.lock().unwrap() == 1 {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    });
    assert_eq!(ends_after(stop, at_once).await, 0);
}
