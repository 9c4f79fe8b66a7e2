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
    nth_of(1, kinds)
}

/// The same, once so many of the signals have arrived. Signals of one kind in quick succession
/// count as one.
pub fn nth_of(
    count: usize,
    kinds: impl IntoIterator<Item = SignalKind>,
) -> io::Result<impl Future<Output = ()> + Send + Sync + 'static> {
    let mut signals = kinds.into_iter().map(signal).collect::<io::Result<Vec<Signal>>>()?;
    let mut arrived = 0_usize;
    Ok(poll_fn(move |context| {
        for signal in &mut signals {
            // Every signal is polled until it is pending, so that each can wake the task.
            while arrived < count && signal.poll_recv(context).is_ready() {
                arrived += 1;
            }
        }
        if arrived >= count { Poll::Ready(()) } else { Poll::Pending }
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
    async fn a_second_signal_may_be_of_another_kind() {
        let first = first_of([SignalKind::window_change()]).unwrap();
        let kinds = [SignalKind::window_change(), SignalKind::io()];
        let mut second = std::pin::pin!(nth_of(2, kinds).unwrap());
        raise(Kind::SIGWINCH).unwrap();
        first.await;
        tokio::select! {
            biased;
            () = &mut second => panic!("there was one signal only"),
            () = tokio::task::yield_now() => {}
        }
        raise(Kind::SIGIO).unwrap();
        second.await;
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
