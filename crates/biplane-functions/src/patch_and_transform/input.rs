//! The decoded input of function-patch-and-transform.
//!
//! Decoding is strict: values of the wrong type and unknown fields are refused. Null counts as
//! absent everywhere.

use std::sync::LazyLock;

use biplane_go::types::{Decoder, META, Mismatch, Types};
use biplane_model::{Map, Value};
use biplane_patch::config::{Fields, Patch, PatchSet, Template, patch, patch_set, template};

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    Types::read(&[
        META,
        "v1beta1.Resources apiVersion:string kind:string metadata:meta.ObjectMeta \
patchSets:[]v1beta1.PatchSet environment:v1beta1.Environment \
resources:[]v1beta1.ComposedTemplate \
writeConnectionSecretToRef:v1beta1.WriteConnectionSecretToRef
v1beta1.PatchSet name:string patches:[]v1beta1.PatchSetPatch
v1beta1.Environment patches:[]v1beta1.EnvironmentPatch
v1beta1.WriteConnectionSecretToRef name:string namespace:string \
patches:[]v1beta1.ConnectionSecretPatch
v1beta1.ComposedTemplate name:string base:any patches:[]v1beta1.ComposedPatch \
connectionDetails:[]v1beta1.ConnectionDetail readinessChecks:[]v1beta1.ReadinessCheck
v1beta1.PatchSetPatch type:string=v1beta1.PatchType fromFieldPath:string \
combine:v1beta1.Combine toFieldPath:string transforms:[]v1beta1.Transform \
policy:v1beta1.PatchPolicy
v1beta1.EnvironmentPatch type:string=v1beta1.PatchType fromFieldPath:string \
combine:v1beta1.Combine toFieldPath:string transforms:[]v1beta1.Transform \
policy:v1beta1.PatchPolicy
v1beta1.ConnectionSecretPatch type:string=v1beta1.PatchType fromFieldPath:string \
combine:v1beta1.Combine toFieldPath:string transforms:[]v1beta1.Transform \
policy:v1beta1.PatchPolicy
v1beta1.ComposedPatch type:string=v1beta1.PatchType patchSetName:string fromFieldPath:string \
combine:v1beta1.Combine toFieldPath:string transforms:[]v1beta1.Transform \
policy:v1beta1.PatchPolicy
v1beta1.PatchPolicy fromFieldPath:string=v1beta1.FromFieldPathPolicy \
toFieldPath:string=v1beta1.ToFieldPathPolicy
v1beta1.Combine variables:[]v1beta1.CombineVariable strategy:string=v1beta1.CombineStrategy \
string:v1beta1.StringCombine
v1beta1.CombineVariable fromFieldPath:string
v1beta1.StringCombine fmt:string
v1beta1.Transform type:string=v1beta1.TransformType math:v1beta1.MathTransform map:{}any \
match:v1beta1.MatchTransform string:v1beta1.StringTransform convert:v1beta1.ConvertTransform
v1beta1.MathTransform type:string=v1beta1.MathTransformType multiply:int64 clampMin:int64 \
clampMax:int64
v1beta1.MatchTransform patterns:[]v1beta1.MatchTransformPattern fallbackValue:any \
fallbackTo:string=v1beta1.MatchFallbackTo
v1beta1.MatchTransformPattern type:string=v1beta1.MatchTransformPatternType literal:string \
regexp:string result:any
v1beta1.StringTransform type:string=v1beta1.StringTransformType fmt:string \
convert:string=v1beta1.StringConversionType trim:string regexp:v1beta1.StringTransformRegexp \
join:v1beta1.StringTransformJoin replace:v1beta1.StringTransformReplace
v1beta1.StringTransformRegexp match:string group:int64
v1beta1.StringTransformJoin separator:string
v1beta1.StringTransformReplace search:string replace:string
v1beta1.ConvertTransform toType:string=v1beta1.TransformIOType \
format:string=v1beta1.ConvertTransformFormat
v1beta1.ConnectionDetail name:string type:string=v1beta1.ConnectionDetailType \
fromConnectionSecretKey:string fromFieldPath:string value:string
v1beta1.ReadinessCheck type:string=v1beta1.ReadinessCheckType fieldPath:string \
matchString:string matchInteger:int64 matchCondition:v1beta1.MatchConditionReadinessCheck
v1beta1.MatchConditionReadinessCheck type:string=v2.ConditionType \
status:string=v1.ConditionStatus",
    ])
});

/// Why the input could not be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot get function input *v1beta1.Resources from *v1.RunFunctionRequest: cannot unmarshal \
     JSON from *structpb.Struct into *v1beta1.Resources: {0}"
)]
pub(super) struct InputError(#[from] Mismatch);

#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) patch_sets: Vec<PatchSet>,
    pub(super) environment: Vec<Patch>,
    pub(super) resources: Vec<Template>,
    pub(super) secret: Option<SecretRef>,
}

#[derive(Debug)]
pub(super) struct SecretRef {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) patches: Vec<Patch>,
}

impl Input {
    /// Decodes the input, if it has the right type.
    pub(super) fn read(input: &Map<String, Value>) -> Result<Self, InputError> {
        TYPES.check(input, "v1beta1.Resources", Decoder::Strict)?;
        let input = Fields(Some(input));
        Ok(Self {
            patch_sets: input.list("patchSets", patch_set),
            environment: input
                .object("environment")
                .map(|environment| environment.list("patches", patch))
                .unwrap_or_default(),
            resources: input.list("resources", template),
            secret: input.object("writeConnectionSecretToRef").map(|secret| SecretRef {
                name: secret.text_or_empty("name"),
                namespace: secret.text_or_empty("namespace"),
                patches: secret.list("patches", patch),
            }),
        })
    }
}
