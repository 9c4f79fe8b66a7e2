//! The schemas of a cluster.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use biplane_cluster::{Cluster as _, List, Query};
use biplane_console::Deadline;
use biplane_kube::{KubeCluster, Options};
use biplane_model::{Gvk, Object};
use biplane_schema::crd;
use clap::Args;

/// Which cluster is asked.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(super) struct ClusterFlags {
    /// Also take the schemas of the CRDs in a cluster; those of files come first
    #[arg(long)]
    cluster: bool,
    /// The kubeconfig file of the cluster, instead of the usual one
    #[arg(long, value_name = "PATH", requires = "cluster")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, instead of its current one
    #[arg(long, value_name = "NAME", requires = "cluster")]
    context: Option<String>,
}

impl ClusterFlags {
    /// Adds the CRDs of the cluster whose kinds are not known yet.
    pub(super) fn add(&self, crds: &mut Vec<Object>, deadline: Deadline) -> Result<()> {
        if !self.cluster {
            return Ok(());
        }
        let same = |a: &Object, b: &Object| {
            [&["spec", "group"][..], &["spec", "names", "kind"]]
                .into_iter()
                .all(|path| a.str_at(path) == b.str_at(path))
        };
        let found = self.list(deadline).context("cannot get the schemas of the cluster")?;
        for crd in found {
            if !crds.iter().any(|known| same(known, &crd)) {
                crds.push(crd);
            }
        }
        Ok(())
    }

    fn list(&self, deadline: Deadline) -> Result<Vec<Object>> {
        let options = Options {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            ..Options::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listed = runtime.block_on(async {
            let cluster = KubeCluster::connect(&options).await?;
            let by = tokio::time::Instant::now() + deadline.remaining();
            let gvk = Gvk::new(crd::API_VERSION, crd::KIND);
            let page = cluster.list(&gvk, &Query::default(), &List::live(), by).await?;
            anyhow::Ok(page.objects)
        });
        runtime.shutdown_background();
        listed
    }
}
