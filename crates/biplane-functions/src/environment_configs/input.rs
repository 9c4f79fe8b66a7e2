//! The input of function-environment-configs.

use std::sync::LazyLock;

use biplane_model::{Map, Value};
use biplane_proto::Struct;

use biplane_go::types::{Decoder, META, Mismatch, Types, unsigned};

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    Types::read(&[
        META,
        "v1beta1.Input apiVersion:string kind:string metadata:meta.ObjectMeta spec:v1beta1.InputSpec
v1beta1.InputSpec defaultData:{}any environmentConfigs:[]v1beta1.EnvironmentSource policy:v1beta1.Policy
v1beta1.Policy resolution:string=v1.ResolutionPolicy
v1beta1.EnvironmentSource type:string=v1beta1.EnvironmentSourceType ref:v1beta1.EnvironmentSourceReference \
selector:v1beta1.EnvironmentSourceSelector toFieldPath:string
v1beta1.EnvironmentSourceReference name:string
v1beta1.EnvironmentSourceSelector mode:string=v1beta1.EnvironmentSourceSelectorModeType \
maxMatch:uint64 minMatch:uint64 sortByFieldPath:string \
matchLabels:[]v1beta1.EnvironmentSourceSelectorLabelMatcher
v1beta1.EnvironmentSourceSelectorLabelMatcher \
type:string=v1beta1.EnvironmentSourceSelectorLabelMatcherType key:string valueFromFieldPath:string \
fromFieldPathPolicy:string=v1beta1.FromFieldPathPolicy value:string",
    ])
});

/// Why the input could not be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot get function input *v1beta1.Input from *v1.RunFunctionRequest: cannot unmarshal JSON \
     from *structpb.Struct into *v1beta1.Input: {0}"
)]
pub(super) struct InputError(#[from] Mismatch);

#[derive(Debug)]
pub(super) struct Input {
    /// The data that all configs override.
    pub(super) default_data: Map<String, Value>,
    pub(super) sources: Vec<Source>,
    /// Whether a missing referenced config is allowed.
    pub(super) optional: bool,
}

#[derive(Debug)]
pub(super) struct Source {
    pub(super) by: By,
    /// The path of the data in the environment. Empty for the root.
    pub(super) path: String,
}

/// How a source finds its configs. Required fields may be missing, because the input is not
/// validated.
#[derive(Debug)]
pub(super) enum By {
    Reference(Option<String>),
    Selector(Option<Selector>),
    /// An unknown type, which is skipped.
    Unknown,
}

#[derive(Debug)]
pub(super) struct Selector {
    pub(super) mode: String,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) sort_by: String,
    pub(super) labels: Vec<Label>,
}

#[derive(Debug)]
pub(super) struct Label {
    pub(super) key: String,
    pub(super) value: LabelValue,
}

#[derive(Debug)]
pub(super) enum LabelValue {
    Literal(Option<String>),
    FromComposite { path: Option<String>, optional: bool },
    Unknown,
}

impl Input {
    /// Decodes the input. Returns `None` if it lists no sources, which disables the function.
    pub(super) fn read(input: Option<Struct>) -> Result<Option<Self>, InputError> {
        let Some(input) = input else { return Ok(None) };
        TYPES.check(&input, "v1beta1.Input", Decoder::Strict)?;
        let mut input = input.into_object().into_map();
        let Some(Value::Object(mut spec)) = input.remove("spec") else { return Ok(None) };
        let Some(Value::Array(sources)) = spec.remove("environmentConfigs") else {
            return Ok(None);
        };
        let default_data = match spec.remove("defaultData") {
            Some(Value::Object(data)) => data,
            _ => Map::new(),
        };
        let policy = spec.get("policy").unwrap_or(&Value::Null);
        Ok(Some(Self {
            default_data,
            sources: sources.iter().map(Source::read).collect(),
            optional: text(policy, "resolution") == "Optional",
        }))
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn owned(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn or<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.is_empty() { default } else { text }
}

impl Source {
    fn read(source: &Value) -> Self {
        let present = |key| source.get(key).filter(|value| value.is_object());
        let by = match or(text(source, "type"), "Reference") {
            "Reference" => {
                By::Reference(present("ref").map(|reference| text(reference, "name").to_owned()))
            }
            "Selector" => By::Selector(present("selector").map(Selector::read)),
            _ => By::Unknown,
        };
        Self { by, path: text(source, "toFieldPath").to_owned() }
    }
}

impl Selector {
    fn read(selector: &Value) -> Self {
        let labels = selector.get("matchLabels").and_then(Value::as_array);
        Self {
            mode: or(text(selector, "mode"), "Single").to_owned(),
            min: selector.get("minMatch").and_then(unsigned),
            max: selector.get("maxMatch").and_then(unsigned),
            sort_by: or(text(selector, "sortByFieldPath"), "metadata.name").to_owned(),
            labels: labels.into_iter().flatten().map(Label::read).collect(),
        }
    }
}

impl Label {
    fn read(label: &Value) -> Self {
        let value = match or(text(label, "type"), "FromCompositeFieldPath") {
            "Value" => LabelValue::Literal(owned(label, "value")),
            "FromCompositeFieldPath" => LabelValue::FromComposite {
                path: owned(label, "valueFromFieldPath"),
                optional: text(label, "fromFieldPathPolicy") == "Optional",
            },
            _ => LabelValue::Unknown,
        };
        Self { key: text(label, "key").to_owned(), value }
    }
}
