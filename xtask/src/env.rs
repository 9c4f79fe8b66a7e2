//! Provides the programs that tests start: etcd, kube-apiserver, kube-controller-manager and kubectl.

use std::time::Instant;

use anyhow::Result;
use biplane_devenv::{Places, Tool, provision};

pub(crate) fn run() -> Result<()> {
    let start = Instant::now();
    let found = provision(&Places::from_env()?, &Tool::ALL, &mut |line| println!("{line}"))?;
    for tool in Tool::ALL {
        println!("{}: {}", tool.name(), found.path(tool)?.display());
    }
    println!("environment ready in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Whether all programs exist, so that nothing must be built.
pub(crate) fn is_provided(places: &Places) -> bool {
    let folders = || places.assets.iter().chain([&places.cache]);
    Tool::ALL.iter().all(|tool| folders().any(|folder| folder.join(tool.name()).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_may_come_from_both_folders() {
        let folder = tempfile::tempdir().unwrap();
        let (assets, cache) = (folder.path().join("assets"), folder.path().join("cache"));
        std::fs::create_dir(&assets).unwrap();
        std::fs::create_dir(&cache).unwrap();
        let places = Places { assets: Some(assets.clone()), cache: cache.clone() };
        std::fs::write(assets.join("etcd"), "").unwrap();
        std::fs::write(assets.join("kubectl"), "").unwrap();
        assert!(!is_provided(&places));
        std::fs::write(cache.join("kube-apiserver"), "").unwrap();
        assert!(!is_provided(&places));
        std::fs::write(cache.join("kube-controller-manager"), "").unwrap();
        assert!(is_provided(&places));
    }
}
