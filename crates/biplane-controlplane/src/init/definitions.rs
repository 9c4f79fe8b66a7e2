//! The CRDs of the control plane: where they come from, and how they are installed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use biplane_cluster::{Apply, Cluster as _, List, Part, Query, Quiet, ReadError, Skipping, Source};
use biplane_model::{Gvk, Object, Value, yaml};
use biplane_schema::own_kinds::{Features, definitions_with};
use tokio::time::Instant;

use super::{MANAGER, Target, soon};

/// The largest file with CRDs.
const LARGEST: u64 = 64 << 20;
/// How often to look whether a CRD is served: soon at first, then less often.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Reads the CRDs of a folder, or returns the built-in ones.
pub(super) fn load(folder: Option<&Path>, features: Features) -> Result<Vec<Object>> {
    let Some(folder) = folder else { return Ok(definitions_with(features)) };
    let attempted = || format!("cannot read CRDs from {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(attempted)? {
        let path = entry.with_context(attempted)?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("yaml" | "yml")) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    let mut crds = Vec::new();
    for file in files {
        crds.extend(read(&file)?);
    }
    if crds.is_empty() {
        bail!("there are no CRDs in {}", folder.display());
    }
    Ok(crds)
}

fn read(file: &Path) -> Result<Vec<Object>> {
    let name = file.display().to_string();
    let bytes = biplane_console::files::read_regular(file, LARGEST)
        .with_context(|| format!("cannot read {name}"))?;
    let text = yaml::decode_text(bytes).with_context(|| format!("cannot read {name}"))?;
    let documents = yaml::parse_documents(&name, &text)?;
    let mut crds = Vec::new();
    for document in documents {
        let crd = Object::from_value(document.value).unwrap_or_default();
        if crd.gvk() != gvk() || crd.name().is_empty() {
            let line = document.line;
            bail!("{name}:{line}: only CRDs can exist in the folder of CRDs");
        }
        crds.push(crd);
    }
    Ok(crds)
}

fn gvk() -> Gvk {
    Gvk::new("apiextensions.k8s.io/v1", "CustomResourceDefinition")
}

/// Applies CRDs, and waits until the API server serves all of their versions.
pub(super) async fn install(target: &Target<'_>, crds: &[Object], within: Duration) -> Result<()> {
    let quiet = Quiet::new(Arc::clone(&target.cluster), Skipping::Skip);
    for crd in crds {
        let attempted = || format!("cannot apply CRD {}", crd.name());
        let known = target.find(&crd.id()).await.with_context(attempted)?;
        let how = Apply::forced(MANAGER);
        let applied = quiet.apply(crd, Part::Main, known.as_ref(), &how, soon()).await;
        let effect = applied.with_context(attempted)?.effect;
        if effect.is_news() {
            tracing::info!(crd = crd.name(), ?effect, "applied");
        }
    }
    let deadline = Instant::now() + within;
    for crd in crds {
        served(target, crd, deadline, within).await?;
    }
    Ok(())
}

/// Waits until the API server serves all versions of a CRD.
async fn served(
    target: &Target<'_>,
    crd: &Object,
    deadline: Instant,
    within: Duration,
) -> Result<()> {
    let mut pause = FIRST_LOOK;
    loop {
        let Some(missing) = missing(target, crd).await? else { return Ok(()) };
        if Instant::now() + pause > deadline {
            let name = crd.name();
            bail!("CRD {name} is not served after {within:?}: {missing}");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LAST_LOOK);
    }
}

/// What is missing until all versions of a CRD are served.
async fn missing(target: &Target<'_>, crd: &Object) -> Result<Option<String>> {
    let attempted = || format!("cannot find out whether CRD {} is served", crd.name());
    let Some(live) = target.find(&crd.id()).await.with_context(attempted)? else {
        return Ok(Some("it does not exist".into()));
    };
    for wanted in ["NamesAccepted", "Established"] {
        let condition = condition(&live, wanted);
        let field = |name: &str| condition.and_then(|c| c.get(name)?.as_str()).unwrap_or_default();
        if field("status") != "True" {
            let message = field("message");
            return Ok(Some(
                format!("it is not {wanted}: {message}").trim_end_matches(": ").into(),
            ));
        }
    }
    for gvk in served_kinds(&live) {
        let one = List { limit: 1, source: Source::Live, ..List::default() };
        match target.cluster.list(&gvk, &Query::default(), &one, soon()).await {
            Ok(_) => {}
            Err(error @ (ReadError::NotFound(_) | ReadError::UnknownKind(_))) => {
                return Ok(Some(error.to_string()));
            }
            Err(error) => return Err(error).with_context(attempted),
        }
    }
    Ok(None)
}

fn condition<'a>(crd: &'a Object, r#type: &str) -> Option<&'a Value> {
    let conditions = crd.at(&["status", "conditions"])?.as_array()?;
    conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(r#type))
}

/// The kinds that a CRD serves, one for each version. Deprecated versions are left out: the server
/// serves them with the others, and would warn of every use.
fn served_kinds(crd: &Object) -> impl Iterator<Item = Gvk> + '_ {
    let is = |version: &Value, field: &str| version.get(field) == Some(&Value::Bool(true));
    let wanted = move |version: &&Value| is(version, "served") && !is(version, "deprecated");
    versions(crd).filter(wanted).filter_map(|version| {
        Some(Gvk {
            group: crd.str_at(&["spec", "group"]).to_owned(),
            version: version.get("name")?.as_str()?.to_owned(),
            kind: crd.str_at(&["spec", "names", "kind"]).to_owned(),
        })
    })
}

/// The versions of a CRD.
pub(super) fn versions(crd: &Object) -> impl Iterator<Item = &Value> {
    crd.at(&["spec", "versions"]).and_then(Value::as_array).into_iter().flatten()
}
