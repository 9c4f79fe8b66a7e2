//! The environment that a Composition asks for, decoded.

use biplane_model::{Map, Object, Value, environment};
use biplane_patch::Dialect;
use biplane_patch::config::{self, Fields};
use biplane_patch::prepared::Patch;
use biplane_patch::transform::Patterns;

/// What a Composition says about its environment.
#[derive(Debug)]
pub(crate) struct Configuration {
    /// The data that everything else overrides.
    pub(crate) default_data: Option<Map<String, Value>>,
    /// Where data comes from, in the order in which it is merged.
    pub(crate) sources: Vec<By>,
    /// Patches between the composite resource and the environment.
    pub(crate) patches: Vec<Patch>,
    /// Whether sources are resolved in every reconcile.
    pub(crate) always: bool,
    /// Whether what is missing is left out.
    pub(crate) optional: bool,
}

/// How a source names EnvironmentConfigs.
#[derive(Debug)]
pub(crate) enum By {
    /// One, by its name.
    Reference(String),
    /// Some, by their labels.
    Selector(Selector),
    /// A type that does not exist.
    Unknown(String),
}

#[derive(Debug)]
pub(crate) struct Selector {
    pub(crate) mode: Mode,
    pub(crate) labels: Vec<Label>,
    pub(crate) sort_by: String,
}

/// How many EnvironmentConfigs a selector selects.
#[derive(Debug)]
pub(crate) enum Mode {
    Single,
    Multiple { least: Option<u64>, most: Option<u64> },
    Unknown(String),
}

#[derive(Debug)]
pub(crate) struct Label {
    pub(crate) key: String,
    pub(crate) value: LabelValue,
    /// Whether the label is left out if its field does not exist.
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) enum LabelValue {
    Given(String),
    /// A field of the composite resource.
    Field(String),
    Wrong(String),
}

impl Configuration {
    /// Decodes the environment of a Composition or a revision, if it has one.
    pub(crate) fn of(composition: &Object) -> Option<Self> {
        let environment = composition.at(&["spec", "environment"]).filter(|e| e.is_object())?;
        let environment = environment::normal(environment);
        let fields = Fields(environment.as_object());
        let patterns = Patterns::default();
        let policy = fields.object("policy");
        let policy = |key| policy.map(|policy| policy.text_or_empty(key)).unwrap_or_default();
        Some(Self {
            default_data: fields.value("defaultData").and_then(Value::as_object).cloned(),
            sources: fields.list("environmentConfigs", source),
            patches: fields.list("patches", |fields| {
                let mut patch = config::patch(fields);
                patch.set_defaults();
                Patch::new(&patch, &patterns, Dialect::COMPOSITION)
            }),
            always: policy("resolve") == "Always",
            optional: policy("resolution") == "Optional",
        })
    }
}

fn source(fields: Fields<'_>) -> By {
    match (fields.text_or_empty("type").as_str(), fields.object("selector")) {
        ("Reference", _) => {
            let reference = fields.object("ref");
            By::Reference(reference.map(|r| r.text_or_empty("name")).unwrap_or_default())
        }
        ("Selector", Some(fields)) => By::Selector(Selector {
            mode: match fields.text_or_empty("mode").as_str() {
                "Single" => Mode::Single,
                "Multiple" => Mode::Multiple {
                    least: fields.integer("minMatch").and_then(|n| n.try_into().ok()),
                    most: fields.integer("maxMatch").and_then(|n| n.try_into().ok()),
                },
                other => Mode::Unknown(other.to_owned()),
            },
            labels: fields.list("matchLabels", label),
            sort_by: fields.text_or_empty("sortByFieldPath"),
        }),
        (other, _) => By::Unknown(other.to_owned()),
    }
}

fn label(fields: Fields<'_>) -> Label {
    let needed = |key: &str, wrap: fn(String) -> LabelValue| match fields.text(key) {
        Some(text) => wrap(text),
        None => LabelValue::Wrong(format!("{key} is required by type Value")),
    };
    Label {
        key: fields.text_or_empty("key"),
        value: match fields.text_or_empty("type").as_str() {
            "Value" => needed("value", LabelValue::Given),
            "FromCompositeFieldPath" => needed("valueFromFieldPath", LabelValue::Field),
            other => LabelValue::Wrong(format!("invalid label matcher type '{other}'")),
        },
        optional: fields.text_or_empty("fromFieldPathPolicy") == "Optional",
    }
}
