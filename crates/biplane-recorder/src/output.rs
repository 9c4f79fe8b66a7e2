//! Writes lines one after another, however many are printed at the same time.
//!
//! A thread does it, so that a reader of standard output that is slow does not hold up the server.

use std::io::{self, Write};
use std::thread;

use tokio::sync::{mpsc, oneshot};

/// How many lines may wait to be written.
const WAITING: usize = 256;

struct Block {
    text: String,
    written: oneshot::Sender<io::Result<()>>,
}

/// Where lines go. Clones share it.
#[derive(Clone, Debug)]
pub struct Output(mpsc::Sender<Block>);

impl Output {
    /// Writes to `out`, until all clones are dropped.
    pub fn new(mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let (sender, mut blocks) = mpsc::channel::<Block>(WAITING);
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            while let Some(Block { text, written }) = blocks.blocking_recv() {
                let result = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                // Who waited for it may have gone.
                let _ = written.send(result);
            }
        })?;
        Ok(Self(sender))
    }

    /// Writes one or more whole lines some time later. Waits if many wait already. Not for
    /// asynchronous code.
    pub fn write_later(&self, text: String) {
        let (written, _) = oneshot::channel();
        if self.0.blocking_send(Block { text, written }).is_err() {
            tracing::info!("cannot print an emission: the output has ended");
        }
    }

    /// Writes one or more whole lines, and returns when they are written. They are also written if
    /// the caller does not wait.
    pub async fn write(&self, text: String) -> io::Result<()> {
        let (written, answer) = oneshot::channel();
        let gone = || io::Error::other("the output has ended");
        self.0.send(Block { text, written }).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}
