//! A gRPC server that replays functions, one recording at a time.

use std::sync::{Arc, Mutex};

use biplane_function::Function;
use biplane_function::serve::{self, Config};
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_testkit::{Recording, player::Player};
use tonic::Status;

type Current = Arc<Mutex<Option<Arc<Player>>>>;

/// Listens on loopback until it is dropped.
pub(crate) struct Server {
    target: String,
    current: Current,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    pub(crate) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let current = Current::default();
        let config = Config {
            address: "127.0.0.1:0".into(),
            insecure: true,
            max_receive_size: usize::MAX,
            metrics_address: None,
            ..Config::default()
        };
        let function = Arc::new(Playing(current.clone()));
        let running = serve::start(function, config, std::future::pending());
        let running = runtime.block_on(running).unwrap();
        Self { target: running.target().to_owned(), current, _runtime: runtime }
    }

    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Replays a recording from now on.
    pub(crate) fn play(&self, recording: &Recording) -> Arc<Player> {
        let player = Arc::new(Player::new(recording));
        *self.current.lock().unwrap() = Some(player.clone());
        player
    }
}

struct Playing(Current);

#[async_trait::async_trait]
impl Function for Playing {
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let player = self.0.lock().unwrap().clone().unwrap();
        Function::run(&*player, request).await
    }
}
