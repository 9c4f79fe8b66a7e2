//! The kinds of `ops.crossplane.io`, which run a pipeline once, by the clock or on a change.

use super::pipeline;
use super::shape::{
    Shape, any_object, choice, conditions, empty_object, int32, int64, kind, list, named, object,
    text, texts, time,
};
use super::{Column, Definition, Version};

pub(super) fn kinds() -> Vec<Definition> {
    vec![operation(), cron_operation(), watch_operation()]
}

fn alpha(
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    columns: Vec<Column>,
    schema: Shape,
) -> Definition {
    Definition {
        group: "ops.crossplane.io",
        kind,
        plural,
        short_names,
        categories: &["crossplane"],
        namespaced: false,
        versions: vec![Version::new("v1alpha1", columns, true, schema)],
    }
}

fn operation_spec() -> Shape {
    object([
        ("mode*", pipeline::mode()),
        ("pipeline*", pipeline::some_steps(false)),
        ("retryLimit", int64()),
    ])
}

fn operation() -> Definition {
    let applied = object([
        ("apiVersion*", text()),
        ("kind*", text()),
        ("name*", text()),
        ("namespace", text()),
    ]);
    let output = object([("step*", text()), ("output", any_object())]);
    let status = object([
        ("conditions", conditions()),
        ("failures", int64()),
        ("pipeline", list(output)),
        ("appliedResourceRefs", list(applied)),
    ]);
    let columns = vec![
        Column::condition("SYNCED", "Synced"),
        Column::condition("SUCCEEDED", "Succeeded"),
        Column::age(),
    ];
    let fields = [("spec", operation_spec()), ("status", status)];
    let schema = kind("Runs a pipeline once.", fields);
    alpha("Operation", "operations", &["ops"], columns, schema)
}

/// What kinds that make Operations have.
fn maker_spec() -> Shape {
    let template = object([("metadata", empty_object()), ("spec*", operation_spec())]);
    object([
        ("concurrencyPolicy", choice(&["Allow", "Forbid", "Replace"]).default("Allow")),
        ("failedHistoryLimit", int32().default(1)),
        ("operationTemplate*", template),
        ("successfulHistoryLimit", int32().default(3)),
    ])
}

fn maker_status() -> Shape {
    object([
        ("conditions", conditions()),
        ("lastScheduleTime", time()),
        ("lastSuccessfulTime", time()),
        ("runningOperationRefs", list(named())),
    ])
}

/// The columns of kinds that make Operations.
fn maker_columns<const N: usize>(first: [Column; N]) -> Vec<Column> {
    let mut columns = Vec::from(first);
    columns.push(Column::date("LAST SCHEDULE", ".status.lastScheduleTime"));
    columns.push(Column::date("LAST SUCCESS", ".status.lastSuccessfulTime"));
    columns.push(Column::age());
    columns
}

fn cron_operation() -> Definition {
    let spec = maker_spec().and([("schedule*", text()), ("startingDeadlineSeconds", int64())]);
    let columns = maker_columns([
        Column::text("SCHEDULE", ".spec.schedule"),
        Column::condition("SYNCED", "Synced"),
        Column::condition("SCHEDULING", "Scheduling"),
    ]);
    let fields = [("spec", spec), ("status", maker_status())];
    let schema = kind("Makes an Operation by the clock.", fields);
    alpha("CronOperation", "cronoperations", &["cronops"], columns, schema)
}

fn watch_operation() -> Definition {
    let fixed = |message: &str| text().rule("self == oldSelf", message);
    let watch = object([
        ("apiVersion*", fixed("apiVersion is immutable")),
        ("kind*", fixed("kind is immutable")),
        ("matchLabels", texts()),
        ("namespace", text()),
    ]);
    let columns = maker_columns([
        Column::text("KIND", ".spec.watch.kind"),
        Column { r#type: "integer", ..Column::text("COUNT", ".status.watchingResources") },
        Column::condition("SYNCED", "Synced"),
        Column::condition("WATCHING", "Watching"),
    ]);
    let status = maker_status().and([("watchingResources", int64())]);
    let fields = [("spec", maker_spec().and([("watch*", watch)])), ("status", status)];
    let schema = kind("Makes an Operation when an object changes.", fields);
    alpha("WatchOperation", "watchoperations", &["watchops"], columns, schema)
}
