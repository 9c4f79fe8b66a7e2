//! Types of Crossplane v1 that differ from v2.

use crate::typed::Field;
use crate::typed::Shape::{Boolean, Integer, List, Map, Raw, Struct, Text};
use crate::typed::When::{Always, Filled, Set};

use super::{CREDENTIAL, METADATA, NAMED, TYPE};

/// A Composition, with resources and patch sets, which v1 had besides pipelines.
pub const COMPOSITION: &[Field] = &[
    ("kind", Text, Filled),
    ("apiVersion", Text, Filled),
    ("metadata", Struct(METADATA), Filled),
    ("spec", Struct(SPEC), Filled),
];

const SPEC: &[Field] = &[
    ("compositeTypeRef", Struct(TYPE), Always),
    ("mode", Text, Set),
    ("patchSets", List(&Struct(PATCH_SET)), Filled),
    // Only up to v1.17. It has two spellings.
    ("environment", Raw, Set),
    ("resources", List(&Struct(TEMPLATE)), Filled),
    ("pipeline", List(&Struct(STEP)), Filled),
    ("writeConnectionSecretsToNamespace", Text, Set),
    ("publishConnectionDetailsWithStoreConfigRef", Struct(NAMED), Set),
];

const STEP: &[Field] = &[
    ("step", Text, Always),
    ("functionRef", Struct(NAMED), Always),
    ("input", Raw, Set),
    ("credentials", List(&Struct(CREDENTIAL)), Filled),
];

const PATCH_SET: &[Field] = &[("name", Text, Always), ("patches", List(&Struct(PATCH)), Always)];

const TEMPLATE: &[Field] = &[
    ("name", Text, Set),
    ("base", Raw, Always),
    ("patches", List(&Struct(PATCH)), Filled),
    ("connectionDetails", List(&Struct(CONNECTION_DETAIL)), Filled),
    ("readinessChecks", List(&Struct(READINESS_CHECK)), Filled),
];

/// A connection detail of a resource.
pub const CONNECTION_DETAIL: &[Field] = &[
    ("name", Text, Set),
    ("type", Text, Set),
    ("fromConnectionSecretKey", Text, Set),
    ("fromFieldPath", Text, Set),
    ("value", Text, Set),
];

const READINESS_CHECK: &[Field] = &[
    ("type", Text, Always),
    ("fieldPath", Text, Filled),
    ("matchString", Text, Filled),
    ("matchInteger", Integer, Filled),
    ("matchCondition", Struct(&[("type", Text, Always), ("status", Text, Always)]), Set),
];

const PATCH: &[Field] = &[
    ("type", Text, Filled),
    ("fromFieldPath", Text, Set),
    ("combine", Struct(COMBINE), Set),
    ("toFieldPath", Text, Set),
    ("patchSetName", Text, Set),
    ("transforms", List(&Struct(TRANSFORM)), Filled),
    ("policy", Struct(POLICY), Set),
];

const COMBINE: &[Field] = &[
    ("variables", List(&Struct(&[("fromFieldPath", Text, Always)])), Always),
    ("strategy", Text, Always),
    ("string", Struct(&[("fmt", Text, Always)]), Set),
];

const POLICY: &[Field] = &[
    ("fromFieldPath", Text, Set),
    (
        "mergeOptions",
        Struct(&[("keepMapValues", Boolean, Set), ("appendSlice", Boolean, Set)]),
        Set,
    ),
];

/// A transform of a patch.
pub const TRANSFORM: &[Field] = &[
    ("type", Text, Always),
    ("math", Struct(MATH), Set),
    ("map", Map(&Raw), Set),
    ("match", Struct(MATCH), Set),
    ("string", Struct(STRING), Set),
    ("convert", Struct(&[("toType", Text, Always), ("format", Text, Set)]), Set),
];

const MATH: &[Field] = &[
    ("type", Text, Filled),
    ("multiply", Integer, Set),
    ("clampMin", Integer, Set),
    ("clampMax", Integer, Set),
];

const MATCH: &[Field] = &[
    ("patterns", List(&Struct(PATTERN)), Filled),
    ("fallbackValue", Raw, Always),
    ("fallbackTo", Text, Filled),
];

const PATTERN: &[Field] = &[
    ("type", Text, Always),
    ("literal", Text, Set),
    ("regexp", Text, Set),
    ("result", Raw, Always),
];

const STRING: &[Field] = &[
    ("type", Text, Filled),
    ("fmt", Text, Set),
    ("convert", Text, Set),
    ("trim", Text, Set),
    ("regexp", Struct(&[("match", Text, Always), ("group", Integer, Set)]), Set),
    ("join", Struct(&[("separator", Text, Always)]), Set),
];
