//! Where templates get the time and random numbers from.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::time::Duration;

use biplane_function::Budget;
use biplane_template::func;
use sha2::{Digest as _, Sha256};

/// How long one template may run.
const MAX_TIME: Duration = Duration::from_secs(10);

/// What is outside of a template.
pub trait World: Debug + Send + Sync {
    /// The time: seconds since 1970 and nanoseconds.
    fn now(&self) -> (i64, u32);

    /// The seed of the random numbers of one run.
    fn seed(&self) -> [u8; 32];

    /// The addresses of a host name, or the error of the resolver.
    fn resolve(&self, name: &str) -> Result<Vec<String>, String> {
        Err(format!("lookup {name}: no such host"))
    }

    /// A clock that only measures how long a run takes. If it stands still, a run may take any time.
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// A world that is always the same, so that rendering is reproducible: the first second of 2024 in
/// UTC, and the same random numbers in every run.
#[derive(Clone, Copy, Debug)]
pub struct Fixed;

impl World for Fixed {
    fn now(&self) -> (i64, u32) {
        (1_704_067_200, 0)
    }

    fn seed(&self) -> [u8; 32] {
        [7; 32]
    }
}

/// The world during one run.
pub(super) struct Host<'world> {
    world: &'world dyn World,
    budget: &'world Budget,
    random: RefCell<Random>,
    started: Duration,
}

impl<'world> Host<'world> {
    pub(super) fn new(world: &'world dyn World, budget: &'world Budget) -> Self {
        let random = Random { seed: world.seed(), block: [0; 32], used: 32, count: Cell::new(0) };
        Self { world, budget, random: RefCell::new(random), started: world.elapsed() }
    }
}

impl func::Host for Host<'_> {
    fn now(&self) -> (i64, u32) {
        self.world.now()
    }

    fn random(&self, buffer: &mut [u8]) {
        if let Ok(mut random) = self.random.try_borrow_mut() {
            random.fill(buffer);
        }
    }

    fn resolve(&self, name: &str) -> Result<Vec<String>, String> {
        self.world.resolve(name)
    }

    fn expired(&self) -> bool {
        self.budget.check().is_err() || self.world.elapsed().saturating_sub(self.started) > MAX_TIME
    }
}

/// Random bytes that follow from a seed: hashes of the seed and a counter.
struct Random {
    seed: [u8; 32],
    block: [u8; 32],
    /// How much of the block was given out.
    used: usize,
    count: Cell<u64>,
}

impl Random {
    fn fill(&mut self, buffer: &mut [u8]) {
        for byte in buffer {
            if self.used == self.block.len() {
                let count = self.count.get();
                self.count.set(count + 1);
                let hash = Sha256::new().chain_update(self.seed).chain_update(count.to_le_bytes());
                self.block = hash.finalize().into();
                self.used = 0;
            }
            *byte = self.block.get(self.used).copied().unwrap_or_default();
            self.used += 1;
        }
    }
}
