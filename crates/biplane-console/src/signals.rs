//! Waits for the signals that stop a server.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that a server handles: interrupt (Ctrl-C) and terminate (from a supervisor).
pub fn of_servers() -> [SignalKind; 2] {
    [SignalKind::interrupt(), SignalKind::terminate()]
}

/// Starts to listen. The future resolves once one of the signals has arrived; from now on the
/// signals no longer end the process. Must be called within a runtime.
pub fn first_of(
    kinds: impl IntoIterator<Item = SignalKind>,
) -> io::Result<impl Future<Output = ()> + Send + Sync + 'static> {
    let mut signals = kinds.into_iter().map(signal).collect::<io::Result<Vec<Signal>>>()?;
    Ok(poll_fn(move |context| {
        // Every signal is polled, so that each can wake the task.
        let arrived = signals.iter_mut().filter_map(|signal| match signal.poll_recv(context) {
            Poll::Ready(_) => Some(()),
            Poll::Pending => None,
        });
        if arrived.count() > 0 { Poll::Ready(()) } else { Poll::Pending }
    }))
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{Signal as Kind, raise};

    use super::*;

    /// The test uses signals that nothing else in this process uses.
    #[tokio::test]
    async fn any_of_the_signals_is_enough() {
        for kind in [Kind::SIGUSR1, Kind::SIGUSR2] {
            let kinds = [SignalKind::user_defined1(), SignalKind::user_defined2()];
            let stop = first_of(kinds).unwrap();
            raise(kind).unwrap();
            stop.await;
        }
    }

    #[tokio::test]
    async fn nothing_stops_without_a_signal() {
        let stop = first_of([SignalKind::alarm()]).unwrap();
        tokio::select! {
            biased;
            () = stop => panic!("there was no signal"),
            () = tokio::task::yield_now() => {}
        }
    }
}
