//! The decoded input of function-patch-and-transform.
//!
//! Decoding is strict: values of the wrong type and unknown fields are refused. Null counts as
//! absent everywhere.

use std::sync::LazyLock;

use biplane_model::{Map, Value, fieldpath};

use biplane_go::types::{Decoder, META, Mismatch, Types};

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
pub(super) struct PatchSet {
    pub(super) name: String,
    pub(super) patches: Vec<Patch>,
}

#[derive(Debug)]
pub(super) struct SecretRef {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) patches: Vec<Patch>,
}

#[derive(Debug)]
pub(super) struct Template {
    pub(super) name: String,
    pub(super) base: Option<Value>,
    pub(super) patches: Vec<Patch>,
    pub(super) connection_details: Vec<ConnectionDetail>,
    pub(super) readiness_checks: Vec<ReadinessCheck>,
}

#[derive(Clone, Debug)]
pub(super) struct Patch {
    /// Never empty.
    pub(super) kind: String,
    pub(super) set_name: Option<String>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) combine: Option<Combine>,
    pub(super) transforms: Vec<Transform>,
    pub(super) policy: Option<Policy>,
}

impl Patch {
    /// Returns the effective source path.
    pub(super) fn source_path(&self) -> &str {
        self.from.as_deref().unwrap_or_default()
    }

    /// Returns the effective destination path.
    pub(super) fn target_path(&self) -> &str {
        self.to.as_deref().unwrap_or(self.source_path())
    }
}

#[derive(Clone, Debug)]
pub(super) struct Policy {
    pub(super) from: String,
    pub(super) to: String,
}

#[derive(Clone, Debug)]
pub(super) struct Combine {
    pub(super) variables: Vec<String>,
    pub(super) strategy: String,
    pub(super) format: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Transform {
    pub(super) kind: String,
    pub(super) math: Option<Math>,
    pub(super) map: Option<Map<String, Value>>,
    pub(super) matching: Option<Match>,
    pub(super) string: Option<Text>,
    pub(super) convert: Option<Convert>,
}

#[derive(Clone, Debug)]
pub(super) struct Math {
    pub(super) kind: String,
    pub(super) multiply: Option<i64>,
    pub(super) clamp_min: Option<i64>,
    pub(super) clamp_max: Option<i64>,
}

#[derive(Clone, Debug)]
pub(super) struct Match {
    pub(super) patterns: Vec<Pattern>,
    pub(super) fallback_value: Value,
    pub(super) fallback_to: String,
}

#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) kind: String,
    pub(super) literal: Option<String>,
    pub(super) regexp: Option<String>,
    pub(super) result: Value,
}

#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) kind: String,
    pub(super) format: Option<String>,
    pub(super) convert: Option<String>,
    pub(super) trim: Option<String>,
    pub(super) regexp: Option<Regexp>,
    pub(super) separator: Option<String>,
    pub(super) replace: Option<Replace>,
}

#[derive(Clone, Debug)]
pub(super) struct Regexp {
    pub(super) pattern: String,
    pub(super) group: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Replace {
    pub(super) search: String,
    pub(super) replace: String,
}

#[derive(Clone, Debug)]
pub(super) struct Convert {
    pub(super) to: String,
    pub(super) format: Option<String>,
}

#[derive(Debug)]
pub(super) struct ConnectionDetail {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) key: Option<String>,
    pub(super) path: Option<String>,
    pub(super) value: Option<String>,
}

#[derive(Debug)]
pub(super) struct ReadinessCheck {
    pub(super) kind: String,
    pub(super) path: Option<String>,
    pub(super) string: Option<String>,
    pub(super) integer: Option<i64>,
    /// The type and status of the condition.
    pub(super) condition: Option<(String, String)>,
}

/// An object whose fields were checked against their types.
#[derive(Clone, Copy)]
struct Fields<'a>(Option<&'a Map<String, Value>>);

impl<'a> Fields<'a> {
    fn value(self, key: &str) -> Option<&'a Value> {
        self.0?.get(key).filter(|value| !value.is_null())
    }

    fn any(self, key: &str) -> Value {
        self.value(key).cloned().unwrap_or_default()
    }

    fn text(self, key: &str) -> Option<String> {
        self.value(key)?.as_str().map(str::to_owned)
    }

    fn text_or_empty(self, key: &str) -> String {
        self.text(key).unwrap_or_default()
    }

    fn integer(self, key: &str) -> Option<i64> {
        let mut number = self.value(key)?.clone();
        fieldpath::normalize(&mut number);
        // Negative zero is the only whole number that we do not store as an integer.
        number.as_i64().or_else(|| number.as_f64().map(|double| double as i64))
    }

    fn object(self, key: &str) -> Option<Self> {
        self.value(key)?.as_object().map(|map| Self(Some(map)))
    }

    fn list<T>(self, key: &str, read: impl Fn(Self) -> T) -> Vec<T> {
        let items = self.value(key).and_then(Value::as_array).map(Vec::as_slice);
        items.unwrap_or_default().iter().map(|item| read(Self(item.as_object()))).collect()
    }
}

impl Input {
    /// Decodes the input, if it has the right type.
    pub(super) fn read(input: &Map<String, Value>) -> Result<Self, InputError> {
        TYPES.check(input, "v1beta1.Resources", Decoder::Strict)?;
        let input = Fields(Some(input));
        Ok(Self {
            patch_sets: input.list("patchSets", |set| PatchSet {
                name: set.text_or_empty("name"),
                patches: set.list("patches", patch),
            }),
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

fn template(fields: Fields<'_>) -> Template {
    Template {
        name: fields.text_or_empty("name"),
        base: fields.value("base").cloned(),
        patches: fields.list("patches", patch),
        connection_details: fields.list("connectionDetails", |detail| ConnectionDetail {
            name: detail.text_or_empty("name"),
            kind: detail.text_or_empty("type"),
            key: detail.text("fromConnectionSecretKey"),
            path: detail.text("fromFieldPath"),
            value: detail.text("value"),
        }),
        readiness_checks: fields.list("readinessChecks", |check| ReadinessCheck {
            kind: check.text_or_empty("type"),
            path: check.text("fieldPath"),
            string: check.text("matchString"),
            integer: check.integer("matchInteger"),
            condition: check.object("matchCondition").map(|condition| {
                (condition.text_or_empty("type"), condition.text_or_empty("status"))
            }),
        }),
    }
}

fn patch(fields: Fields<'_>) -> Patch {
    let kind = fields.text("type").filter(|kind| !kind.is_empty());
    Patch {
        kind: kind.unwrap_or_else(|| "FromCompositeFieldPath".to_owned()),
        set_name: fields.text("patchSetName"),
        from: fields.text("fromFieldPath"),
        to: fields.text("toFieldPath"),
        combine: fields.object("combine").map(|combine| Combine {
            variables: combine
                .list("variables", |variable| variable.text_or_empty("fromFieldPath")),
            strategy: combine.text_or_empty("strategy"),
            format: combine.object("string").map(|string| string.text_or_empty("fmt")),
        }),
        transforms: fields.list("transforms", transform),
        policy: fields.object("policy").map(|policy| Policy {
            from: policy.text("fromFieldPath").unwrap_or_else(|| "Optional".to_owned()),
            to: policy.text("toFieldPath").unwrap_or_else(|| "Replace".to_owned()),
        }),
    }
}

fn transform(fields: Fields<'_>) -> Transform {
    Transform {
        kind: fields.text_or_empty("type"),
        math: fields.object("math").map(|math| Math {
            kind: math.text_or_empty("type"),
            multiply: math.integer("multiply"),
            clamp_min: math.integer("clampMin"),
            clamp_max: math.integer("clampMax"),
        }),
        map: fields.value("map").and_then(Value::as_object).cloned(),
        matching: fields.object("match").map(|matching| Match {
            patterns: matching.list("patterns", |pattern| Pattern {
                kind: pattern.text_or_empty("type"),
                literal: pattern.text("literal"),
                regexp: pattern.text("regexp"),
                result: pattern.any("result"),
            }),
            fallback_value: matching.any("fallbackValue"),
            fallback_to: matching.text_or_empty("fallbackTo"),
        }),
        string: fields.object("string").map(|string| Text {
            kind: string.text_or_empty("type"),
            format: string.text("fmt"),
            convert: string.text("convert"),
            trim: string.text("trim"),
            regexp: string.object("regexp").map(|regexp| Regexp {
                pattern: regexp.text_or_empty("match"),
                group: regexp.integer("group").unwrap_or_default(),
            }),
            separator: string.object("join").map(|join| join.text_or_empty("separator")),
            replace: string.object("replace").map(|replace| Replace {
                search: replace.text_or_empty("search"),
                replace: replace.text_or_empty("replace"),
            }),
        }),
        convert: fields.object("convert").map(|convert| Convert {
            to: convert.text_or_empty("toType"),
            format: convert.text("format"),
        }),
    }
}
