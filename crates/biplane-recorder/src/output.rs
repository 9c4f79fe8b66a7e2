//! Writes lines one after another, however many are printed at the same time.
//!
//! A thread does it, so that a reader of standard output that is slow does not hold up the server.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// How many lines may wait to be written.
const WAITING: usize = 256;

/// Who has more to do than to print waits for the reader this long, until the reader takes something
/// again.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

struct Block {
    text: String,
    written: oneshot::Sender<io::Result<()>>,
}

/// Where lines go. Clones share it.
#[derive(Clone, Debug)]
pub struct Output {
    blocks: mpsc::Sender<Block>,
    /// The reader takes nothing.
    is_stuck: Arc<AtomicBool>,
}

impl Output {
    /// Writes to `out`, until all clones are dropped.
    pub fn new(mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let (sender, mut blocks) = mpsc::channel::<Block>(WAITING);
        let is_stuck = Arc::<AtomicBool>::default();
        let taken = Arc::clone(&is_stuck);
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            while let Some(Block { text, written }) = blocks.blocking_recv() {
                let result = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                taken.store(false, Ordering::Relaxed);
                // Who waited for it may have gone.
                let _ = written.send(result);
            }
        })?;
        Ok(Self { blocks: sender, is_stuck })
    }

    /// Writes one or more whole lines some time later. Waits a little if many wait already. Returns
    /// whether they will be written. Not for asynchronous code.
    pub fn write_later(&self, text: String) -> bool {
        let (written, _) = oneshot::channel();
        let mut block = Block { text, written };
        let begun = Instant::now();
        loop {
            match self.blocks.try_send(block) {
                Ok(()) => return true,
                Err(TrySendError::Closed(_)) => {
                    tracing::info!("cannot print an emission: the output has ended");
                    return false;
                }
                Err(TrySendError::Full(back)) => block = back,
            }
            if self.is_stuck.load(Ordering::Relaxed) || begun.elapsed() >= PATIENCE {
                self.stuck();
                return false;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Writes one or more whole lines, and returns when they are written, or the reader does not take
    /// them. Returns whether they are written.
    pub async fn write_soon(&self, text: String) -> io::Result<bool> {
        let is_stuck = self.is_stuck.load(Ordering::Relaxed);
        let patience = if is_stuck { Duration::ZERO } else { PATIENCE };
        if let Ok(written) = tokio::time::timeout(patience, self.write(text)).await {
            return written.map(|()| true);
        }
        self.stuck();
        Ok(false)
    }

    fn stuck(&self) {
        if !self.is_stuck.swap(true, Ordering::Relaxed) {
            tracing::warn!("nobody reads standard output: lines are not printed");
        }
    }

    /// Writes one or more whole lines, and returns when they are written. They are also written if
    /// the caller does not wait.
    pub async fn write(&self, text: String) -> io::Result<()> {
        let (written, answer) = oneshot::channel();
        let gone = || io::Error::other("the output has ended");
        self.blocks.send(Block { text, written }).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}
