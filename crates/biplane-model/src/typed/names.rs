//! Go's names of the types, for the error messages of its JSON decoder.

use super::Shape;

/// The Go types of the parts of an object, by field path: of the object itself, of structs, and of
/// other fields whose type differs from their shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names(&'static [(&'static str, &'static str)]);

impl Names {
    /// Any object.
    pub const OBJECT: Self = Self(&[("", "map[string]interface {}")]);
    /// The type metadata of an object.
    pub const TYPE: Self = Self(&[("", "v1.TypeMeta")]);
    /// A Composition.
    pub const COMPOSITION: Self = Self(&[
        ("", "v1.Composition"),
        ("spec", "v1.CompositionSpec"),
        ("spec.compositeTypeRef", "v1.TypeReference"),
        ("spec.mode", "v1.CompositionMode"),
        ("spec.pipeline", "v1.PipelineStep"),
        ("spec.pipeline.functionRef", "v1.FunctionReference"),
        ("spec.pipeline.credentials", "v1.FunctionCredentials"),
        ("spec.pipeline.credentials.source", "v1.FunctionCredentialsSource"),
        ("spec.pipeline.credentials.secretRef", "v2.SecretReference"),
        ("spec.pipeline.requirements", "v1.FunctionRequirements"),
        ("spec.pipeline.requirements.requiredResources", "v1.RequiredResourceSelector"),
        ("spec.pipeline.requirements.requiredSchemas", "v1.RequiredSchemaSelector"),
    ]);
    /// A Composition of Crossplane v1.
    pub const COMPOSITION_V1: Self = Self(&[
        ("", "v1.Composition"),
        ("spec", "v1.CompositionSpec"),
        ("spec.compositeTypeRef", "v1.TypeReference"),
        ("spec.mode", "v1.CompositionMode"),
        ("spec.patchSets", "v1.PatchSet"),
        ("spec.resources", "v1.ComposedTemplate"),
        ("spec.resources.connectionDetails", "v1.ConnectionDetail"),
        ("spec.resources.connectionDetails.type", "v1.ConnectionDetailType"),
        ("spec.resources.readinessChecks", "v1.ReadinessCheck"),
        ("spec.resources.readinessChecks.type", "v1.ReadinessCheckType"),
        ("spec.resources.readinessChecks.matchCondition", "v1.MatchConditionReadinessCheck"),
        ("spec.resources.readinessChecks.matchCondition.type", "v1.ConditionType"),
        ("spec.resources.readinessChecks.matchCondition.status", "v1.ConditionStatus"),
        ("spec.pipeline", "v1.PipelineStep"),
        ("spec.pipeline.functionRef", "v1.FunctionReference"),
        ("spec.pipeline.credentials", "v1.FunctionCredentials"),
        ("spec.pipeline.credentials.source", "v1.FunctionCredentialsSource"),
        ("spec.pipeline.credentials.secretRef", "v1.SecretReference"),
        ("spec.publishConnectionDetailsWithStoreConfigRef", "v1.StoreConfigReference"),
    ]);
    /// A CompositeResourceDefinition.
    pub const DEFINITION: Self = Self(&[
        ("", "v1.CompositeResourceDefinition"),
        ("spec", "v1.CompositeResourceDefinitionSpec"),
        ("spec.names", "v1.CustomResourceDefinitionNames"),
        ("spec.scope", "v1.CompositeResourceScope"),
        ("spec.claimNames", "v1.CustomResourceDefinitionNames"),
        ("spec.defaultCompositeDeletePolicy", "v2.CompositeDeletePolicy"),
        ("spec.defaultCompositionRef", "v1.CompositionReference"),
        ("spec.defaultCompositionRevisionSelector", "v1.LabelSelector"),
        ("spec.defaultCompositionRevisionSelector.matchExpressions", "v1.LabelSelectorRequirement"),
        (
            "spec.defaultCompositionRevisionSelector.matchExpressions.operator",
            "v1.LabelSelectorOperator",
        ),
        ("spec.enforcedCompositionRef", "v1.CompositionReference"),
        ("spec.defaultCompositionUpdatePolicy", "v2.UpdatePolicy"),
        ("spec.versions", "v1.CompositeResourceDefinitionVersion"),
        ("spec.versions.schema", "v1.CompositeResourceValidation"),
        ("spec.versions.additionalPrinterColumns", "v1.CustomResourceColumnDefinition"),
        ("spec.versions.additionalPrinterColumns.priority", "int32"),
        ("spec.versions.subresources", "v1.CompositeResourceDefinitionVersionSubresources"),
        ("spec.versions.subresources.scale", "v1.CustomResourceSubresourceScale"),
        ("spec.conversion", "v1.CustomResourceConversion"),
        ("spec.conversion.strategy", "v1.ConversionStrategyType"),
        ("spec.conversion.webhook", "v1.WebhookConversion"),
        ("spec.metadata", "v1.CompositeResourceDefinitionSpecMetadata"),
        ("status", "v1.CompositeResourceDefinitionStatus"),
        ("status.conditions", "v2.Condition"),
        ("status.controllers", "v1.CompositeResourceDefinitionControllerStatus"),
        ("status.controllers.compositeResourceType", "v1.TypeReference"),
        ("status.controllers.compositeResourceClaimType", "v1.TypeReference"),
    ]);
    /// A Function.
    pub const FUNCTION: Self = Self(&[
        ("", "v1.Function"),
        ("spec", "v1.FunctionSpec"),
        ("spec.revisionActivationPolicy", "v1.RevisionActivationPolicy"),
        ("spec.packagePullSecrets", "v1.LocalObjectReference"),
        ("spec.packagePullPolicy", "v1.PullPolicy"),
        ("spec.runtimeConfigRef", "v1.RuntimeConfigReference"),
    ]);
    /// A Secret.
    pub const SECRET: Self = Self(&[("", "v1.Secret"), ("type", "v1.SecretType")]);
    /// An Operation.
    pub const OPERATION: Self = Self(&[
        ("", "v1alpha1.Operation"),
        ("spec", "v1alpha1.OperationSpec"),
        ("spec.mode", "v1alpha1.OperationMode"),
        ("spec.pipeline", "v1alpha1.PipelineStep"),
        ("spec.pipeline.functionRef", "v1alpha1.FunctionReference"),
        ("spec.pipeline.credentials", "v1alpha1.FunctionCredentials"),
        ("spec.pipeline.credentials.source", "v1alpha1.FunctionCredentialsSource"),
        ("spec.pipeline.credentials.secretRef", "v2.SecretReference"),
        ("spec.pipeline.requirements", "v1alpha1.FunctionRequirements"),
        ("spec.pipeline.requirements.requiredResources", "v1alpha1.RequiredResourceSelector"),
        ("spec.pipeline.requirements.requiredSchemas", "v1alpha1.RequiredSchemaSelector"),
        ("status", "v1alpha1.OperationStatus"),
        ("status.conditions", "v2.Condition"),
        ("status.pipeline", "v1alpha1.PipelineStepStatus"),
        ("status.appliedResourceRefs", "v1alpha1.AppliedResourceRef"),
    ]);
    /// A CronOperation.
    pub const CRON_OPERATION: Self = Self(&[
        ("", "v1alpha1.CronOperation"),
        ("spec", "v1alpha1.CronOperationSpec"),
        ("spec.concurrencyPolicy", "v1alpha1.ConcurrencyPolicy"),
        ("spec.successfulHistoryLimit", "int32"),
        ("spec.failedHistoryLimit", "int32"),
        ("spec.operationTemplate", "v1alpha1.OperationTemplate"),
        ("spec.operationTemplate.spec", "v1alpha1.OperationSpec"),
        ("status", "v1alpha1.CronOperationStatus"),
        ("status.conditions", "v2.Condition"),
        ("status.runningOperationRefs", "v1alpha1.RunningOperationRef"),
    ]);
    /// A WatchOperation.
    pub const WATCH_OPERATION: Self = Self(&[
        ("", "v1alpha1.WatchOperation"),
        ("spec", "v1alpha1.WatchOperationSpec"),
        ("spec.watch", "v1alpha1.WatchSpec"),
        ("spec.concurrencyPolicy", "v1alpha1.ConcurrencyPolicy"),
        ("spec.successfulHistoryLimit", "int32"),
        ("spec.failedHistoryLimit", "int32"),
        ("spec.operationTemplate", "v1alpha1.OperationTemplate"),
        ("spec.operationTemplate.spec", "v1alpha1.OperationSpec"),
        ("status", "v1alpha1.WatchOperationStatus"),
        ("status.conditions", "v2.Condition"),
        ("status.runningOperationRefs", "v1alpha1.RunningOperationRef"),
    ]);

    /// The type of the object itself.
    pub(super) fn root(self) -> &'static str {
        self.0.first().map_or("", |(_, name)| name)
    }

    /// The target in Go's error message: the field at this path, and its type.
    pub(super) fn target(self, fields: &[&str], shape: &Shape) -> String {
        let Some((_, parents)) = fields.split_last() else {
            return format!("Go value of type {}", self.root());
        };
        let holder = self.find(&parents.join(".")).unwrap_or_default();
        let holder = holder.rsplit('.').next().unwrap_or_default();
        let (shown, kind) = (self.shown(fields), self.kind(&fields.join("."), shape));
        format!("Go struct field {holder}.{shown} of type {kind}")
    }

    fn find(self, path: &str) -> Option<&'static str> {
        let find = |names: &'static [(&str, &'static str)], path: &str| {
            names.iter().find(|(known, _)| *known == path).map(|(_, name)| *name)
        };
        find(self.0, path).or_else(|| {
            for patches in ["spec.patchSets.patches", "spec.resources.patches"] {
                if let Some(rest) = path.strip_prefix(patches) {
                    return find(PATCHES, rest.trim_start_matches('.'));
                }
            }
            let (template, inner) = match path.strip_prefix("spec.operationTemplate.") {
                Some(inner) => (true, inner),
                None => (false, path),
            };
            match inner.split_once('.').unwrap_or((inner, "")) {
                ("metadata", rest) => find(METADATA, rest),
                ("spec", _) if template => find(Self::OPERATION.0, inner),
                ("status", rest) => find(CONDITIONED, rest),
                _ => None,
            }
        })
    }

    /// The embedded struct on the way to a field, and its position in the path.
    pub(super) fn embedded(self, fields: &[&str]) -> Option<(usize, &'static str)> {
        match fields {
            ["kind" | "apiVersion"] if self.root() != Self::TYPE.root() => Some((0, "TypeMeta")),
            ["status", "conditions", ..] => Some((1, "ConditionedStatus")),
            ["spec", "runtimeConfigRef", ..] => Some((1, "PackageRuntimeSpec")),
            ["spec", _, ..] if self.root() == Self::FUNCTION.root() => Some((1, "PackageSpec")),
            _ => None,
        }
    }

    /// A field path, with embedded structs included.
    fn shown(self, fields: &[&str]) -> String {
        let mut shown = fields.to_vec();
        if let Some((place, name)) = self.embedded(fields) {
            shown.insert(place, name);
        }
        shown.join(".")
    }

    fn kind(self, path: &str, shape: &Shape) -> String {
        let known = |usual: &str| self.find(path).unwrap_or(usual).to_owned();
        match shape {
            Shape::Text => known("string"),
            Shape::Integer => known("int64"),
            Shape::Boolean => "bool".to_owned(),
            Shape::Bytes => "[]uint8".to_owned(),
            Shape::Time => "string".to_owned(),
            Shape::Raw => known("interface {}"),
            Shape::Struct(_) => known("struct"),
            Shape::Map(each) => format!("map[string]{}", self.kind(path, each)),
            Shape::List(each) => format!("[]{}", self.kind(path, each)),
        }
    }
}

const METADATA: &[(&str, &str)] = &[
    ("", "v1.ObjectMeta"),
    ("uid", "types.UID"),
    ("ownerReferences", "v1.OwnerReference"),
    ("ownerReferences.uid", "types.UID"),
    ("managedFields", "v1.ManagedFieldsEntry"),
    ("managedFields.operation", "v1.ManagedFieldsOperationType"),
];

const PATCHES: &[(&str, &str)] = &[
    ("", "v1.Patch"),
    ("type", "v1.PatchType"),
    ("combine", "v1.Combine"),
    ("combine.variables", "v1.CombineVariable"),
    ("combine.strategy", "v1.CombineStrategy"),
    ("combine.string", "v1.StringCombine"),
    ("policy", "v1.PatchPolicy"),
    ("policy.fromFieldPath", "v1.FromFieldPathPolicy"),
    ("policy.mergeOptions", "v1.MergeOptions"),
    ("transforms", "v1.Transform"),
    ("transforms.type", "v1.TransformType"),
    ("transforms.math", "v1.MathTransform"),
    ("transforms.math.type", "v1.MathTransformType"),
    ("transforms.map", "v1.JSON"),
    ("transforms.match", "v1.MatchTransform"),
    ("transforms.match.fallbackTo", "v1.MatchFallbackTo"),
    ("transforms.match.patterns", "v1.MatchTransformPattern"),
    ("transforms.match.patterns.type", "v1.MatchTransformPatternType"),
    ("transforms.string", "v1.StringTransform"),
    ("transforms.string.type", "v1.StringTransformType"),
    ("transforms.string.convert", "v1.StringConversionType"),
    ("transforms.string.regexp", "v1.StringTransformRegexp"),
    ("transforms.string.regexp.group", "int"),
    ("transforms.string.join", "v1.StringTransformJoin"),
    ("transforms.convert", "v1.ConvertTransform"),
    ("transforms.convert.toType", "v1.TransformIOType"),
    ("transforms.convert.format", "v1.ConvertTransformFormat"),
];

const CONDITIONED: &[(&str, &str)] = &[
    ("conditions", "v2.Condition"),
    ("conditions.type", "v2.ConditionType"),
    ("conditions.status", "v1.ConditionStatus"),
    ("conditions.reason", "v2.ConditionReason"),
];
