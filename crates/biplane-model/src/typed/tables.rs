//! Tables of the types: their fields, in the order in which they are read.

pub mod v1;

use super::Shape::{Boolean, Bytes, Integer, List, Map, Raw, Struct, Text, Time};
use super::When::{Always, Filled, Set};
use super::{Field, Shape};

const TEXTS: Shape = Map(&Text);
const LIST_OF_TEXTS: Shape = List(&Text);

const METADATA: &[Field] = &[
    ("name", Text, Filled),
    ("generateName", Text, Filled),
    ("namespace", Text, Filled),
    ("selfLink", Text, Filled),
    ("uid", Text, Filled),
    ("resourceVersion", Text, Filled),
    ("generation", Integer, Filled),
    ("creationTimestamp", Time, Filled),
    ("deletionTimestamp", Time, Set),
    ("deletionGracePeriodSeconds", Integer, Set),
    ("labels", TEXTS, Filled),
    ("annotations", TEXTS, Filled),
    ("ownerReferences", List(&Struct(OWNER)), Filled),
    ("finalizers", LIST_OF_TEXTS, Filled),
    ("managedFields", List(&Struct(MANAGED_FIELDS)), Filled),
];

const OWNER: &[Field] = &[
    ("apiVersion", Text, Always),
    ("kind", Text, Always),
    ("name", Text, Always),
    ("uid", Text, Always),
    ("controller", Boolean, Set),
    ("blockOwnerDeletion", Boolean, Set),
];

const MANAGED_FIELDS: &[Field] = &[
    ("manager", Text, Filled),
    ("operation", Text, Filled),
    ("apiVersion", Text, Filled),
    ("time", Time, Set),
    ("fieldsType", Text, Filled),
    ("fieldsV1", Raw, Set),
    ("subresource", Text, Filled),
];

const CONDITION: &[Field] = &[
    ("type", Text, Always),
    ("status", Text, Always),
    ("lastTransitionTime", Time, Always),
    ("reason", Text, Always),
    ("message", Text, Filled),
    ("observedGeneration", Integer, Filled),
];
const CONDITIONS: Shape = List(&Struct(CONDITION));

/// The type metadata of an object.
pub const TYPE: &[Field] = &[("apiVersion", Text, Always), ("kind", Text, Always)];
const NAMED: &[Field] = &[("name", Text, Always)];

/// A Composition.
pub const COMPOSITION: &[Field] = &[
    ("kind", Text, Filled),
    ("apiVersion", Text, Filled),
    ("metadata", Struct(METADATA), Filled),
    ("spec", Struct(COMPOSITION_SPEC), Filled),
];

const COMPOSITION_SPEC: &[Field] = &[
    ("compositeTypeRef", Struct(TYPE), Always),
    ("mode", Text, Filled),
    ("pipeline", List(&Struct(STEP)), Filled),
    ("writeConnectionSecretsToNamespace", Text, Set),
];

const STEP: &[Field] = &[
    ("step", Text, Always),
    ("functionRef", Struct(NAMED), Always),
    ("input", Raw, Set),
    ("credentials", List(&Struct(CREDENTIAL)), Filled),
    ("requirements", Struct(REQUIREMENTS), Set),
];

const CREDENTIAL: &[Field] = &[
    ("name", Text, Always),
    ("source", Text, Always),
    ("secretRef", Struct(SECRET_REFERENCE), Set),
];

const SECRET_REFERENCE: &[Field] = &[("name", Text, Always), ("namespace", Text, Always)];

const REQUIREMENTS: &[Field] = &[
    ("requiredResources", List(&Struct(REQUIRED_RESOURCE)), Filled),
    ("requiredSchemas", List(&Struct(REQUIRED_SCHEMA)), Filled),
];

const REQUIRED_SCHEMA: &[Field] =
    &[("requirementName", Text, Always), ("apiVersion", Text, Always), ("kind", Text, Always)];

const REQUIRED_RESOURCE: &[Field] = &[
    ("requirementName", Text, Always),
    ("apiVersion", Text, Always),
    ("kind", Text, Always),
    ("namespace", Text, Set),
    ("name", Text, Set),
    ("matchLabels", TEXTS, Filled),
];

/// An Operation.
pub const OPERATION: &[Field] = &[
    ("kind", Text, Filled),
    ("apiVersion", Text, Filled),
    ("metadata", Struct(METADATA), Filled),
    ("spec", Struct(OPERATION_SPEC), Filled),
    ("status", Struct(OPERATION_STATUS), Filled),
];

const OPERATION_SPEC: &[Field] = &[
    ("mode", Text, Always),
    ("pipeline", List(&Struct(STEP)), Always),
    ("retryLimit", Integer, Set),
];

const OPERATION_STATUS: &[Field] = &[
    ("conditions", CONDITIONS, Filled),
    ("failures", Integer, Filled),
    ("pipeline", List(&Struct(OUTPUT)), Filled),
    ("appliedResourceRefs", List(&Struct(APPLIED)), Filled),
];

const OUTPUT: &[Field] = &[("step", Text, Always), ("output", Raw, Set)];

const APPLIED: &[Field] = &[
    ("apiVersion", Text, Always),
    ("kind", Text, Always),
    ("namespace", Text, Set),
    ("name", Text, Always),
];

/// An operation template: metadata and a spec.
pub const TEMPLATE: &[Field] =
    &[("metadata", Struct(METADATA), Filled), ("spec", Struct(OPERATION_SPEC), Filled)];

/// A CronOperation or a WatchOperation. Their fields do not clash.
pub const MAKER: &[Field] = &[
    ("kind", Text, Filled),
    ("apiVersion", Text, Filled),
    ("metadata", Struct(METADATA), Filled),
    ("spec", Struct(MAKER_SPEC), Filled),
    ("status", Struct(MAKER_STATUS), Filled),
];

const MAKER_SPEC: &[Field] = &[
    ("schedule", Text, Always),
    ("watch", Struct(WATCH), Always),
    ("startingDeadlineSeconds", Integer, Set),
    ("concurrencyPolicy", Text, Set),
    ("successfulHistoryLimit", Integer, Set),
    ("failedHistoryLimit", Integer, Set),
    ("operationTemplate", Struct(TEMPLATE), Always),
];

const WATCH: &[Field] = &[
    ("apiVersion", Text, Always),
    ("kind", Text, Always),
    ("matchLabels", TEXTS, Filled),
    ("namespace", Text, Filled),
];

const MAKER_STATUS: &[Field] = &[
    ("conditions", CONDITIONS, Filled),
    ("runningOperationRefs", List(&Struct(NAMED)), Filled),
    ("watchingResources", Integer, Filled),
    ("lastScheduleTime", Time, Set),
    ("lastSuccessfulTime", Time, Set),
];

/// A Secret.
pub const SECRET: &[Field] = &[
    ("kind", Text, Filled),
    ("apiVersion", Text, Filled),
    ("metadata", Struct(METADATA), Filled),
    ("immutable", Boolean, Set),
    ("data", Map(&Bytes), Filled),
    ("stringData", TEXTS, Filled),
    ("type", Text, Filled),
];

/// A Function.
pub const FUNCTION: &[Field] = &[
    ("kind", Text, Filled),
    ("apiVersion", Text, Filled),
    ("metadata", Struct(METADATA), Filled),
    ("spec", Struct(PACKAGE), Filled),
];

const PACKAGE: &[Field] = &[
    ("package", Text, Always),
    ("revisionActivationPolicy", Text, Set),
    ("revisionHistoryLimit", Integer, Set),
    ("packagePullSecrets", List(&Struct(NAMED)), Filled),
    ("packagePullPolicy", Text, Set),
    ("ignoreCrossplaneConstraints", Boolean, Set),
    ("skipDependencyResolution", Boolean, Set),
    ("commonLabels", TEXTS, Filled),
    ("runtimeConfigRef", Struct(RUNTIME_CONFIG), Set),
];

const RUNTIME_CONFIG: &[Field] =
    &[("apiVersion", Text, Set), ("kind", Text, Set), ("name", Text, Always)];

/// A CompositeResourceDefinition.
pub const DEFINITION: &[Field] = &[
    ("kind", Text, Filled),
    ("apiVersion", Text, Filled),
    ("metadata", Struct(METADATA), Filled),
    ("spec", Struct(DEFINITION_SPEC), Filled),
    ("status", Struct(DEFINITION_STATUS), Filled),
];

const DEFINITION_SPEC: &[Field] = &[
    ("group", Text, Always),
    ("names", Struct(NAMES), Always),
    ("scope", Text, Set),
    ("claimNames", Struct(NAMES), Set),
    ("connectionSecretKeys", LIST_OF_TEXTS, Filled),
    ("defaultCompositeDeletePolicy", Text, Set),
    ("defaultCompositionRef", Struct(NAMED), Set),
    ("defaultCompositionRevisionSelector", Struct(LABEL_SELECTOR), Set),
    ("enforcedCompositionRef", Struct(NAMED), Set),
    ("defaultCompositionUpdatePolicy", Text, Set),
    ("versions", List(&Struct(VERSION)), Always),
    ("conversion", Struct(CONVERSION), Set),
    ("metadata", Struct(MARKS), Set),
];

const NAMES: &[Field] = &[
    ("plural", Text, Always),
    ("singular", Text, Filled),
    ("shortNames", LIST_OF_TEXTS, Filled),
    ("kind", Text, Always),
    ("listKind", Text, Filled),
    ("categories", LIST_OF_TEXTS, Filled),
];

const LABEL_SELECTOR: &[Field] =
    &[("matchLabels", TEXTS, Filled), ("matchExpressions", List(&Struct(EXPRESSION)), Filled)];

const EXPRESSION: &[Field] =
    &[("key", Text, Always), ("operator", Text, Always), ("values", LIST_OF_TEXTS, Filled)];

const VERSION: &[Field] = &[
    ("name", Text, Always),
    ("referenceable", Boolean, Always),
    ("served", Boolean, Always),
    ("deprecated", Boolean, Set),
    ("deprecationWarning", Text, Set),
    ("schema", Struct(&[("openAPIV3Schema", Raw, Filled)]), Set),
    ("additionalPrinterColumns", List(&Struct(COLUMN)), Filled),
    ("subresources", Struct(&[("scale", Struct(SCALE), Set)]), Set),
];

const COLUMN: &[Field] = &[
    ("name", Text, Always),
    ("type", Text, Always),
    ("format", Text, Filled),
    ("description", Text, Filled),
    ("priority", Integer, Filled),
    ("jsonPath", Text, Always),
];

const SCALE: &[Field] = &[
    ("specReplicasPath", Text, Always),
    ("statusReplicasPath", Text, Always),
    ("labelSelectorPath", Text, Set),
];

const CONVERSION: &[Field] = &[
    ("strategy", Text, Always),
    ("webhook", Struct(&[("conversionReviewVersions", LIST_OF_TEXTS, Always)]), Set),
];

const MARKS: &[Field] = &[("labels", TEXTS, Filled), ("annotations", TEXTS, Filled)];

const DEFINITION_STATUS: &[Field] = &[
    ("conditions", CONDITIONS, Filled),
    (
        "controllers",
        Struct(&[
            ("compositeResourceType", Struct(TYPE), Filled),
            ("compositeResourceClaimType", Struct(TYPE), Filled),
        ]),
        Filled,
    ),
];
