//! What a Composition or an input says about patches and transforms, decoded.
//!
//! Null counts as absent everywhere.

use biplane_model::fieldpath::MergeOptions;
use biplane_model::{Map, Value, fieldpath};

/// A set of patches that templates share.
#[derive(Clone, Debug)]
pub struct PatchSet {
    pub name: String,
    pub patches: Vec<Patch>,
}

/// The template of a composed resource.
#[derive(Clone, Debug)]
pub struct Template {
    pub name: String,
    pub base: Option<Value>,
    pub patches: Vec<Patch>,
    pub connection_details: Vec<ConnectionDetail>,
    pub readiness_checks: Vec<ReadinessCheck>,
}

/// A patch.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Never empty.
    pub kind: String,
    pub set_name: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub combine: Option<Combine>,
    pub transforms: Vec<Transform>,
    pub policy: Option<Policy>,
}

impl Patch {
    /// Returns the effective source path.
    pub fn source_path(&self) -> &str {
        self.from.as_deref().unwrap_or_default()
    }

    /// Returns the effective destination path.
    pub fn target_path(&self) -> &str {
        self.to.as_deref().unwrap_or(self.source_path())
    }
}

/// How a patch treats what is missing, and what is there.
#[derive(Clone, Debug)]
pub struct Policy {
    /// `Optional` or `Required`.
    pub from: String,
    /// How the function names the way to merge.
    pub to: String,
    /// How a Composition names it.
    pub merge_options: Option<MergeOptions>,
}

/// Several values as one.
#[derive(Clone, Debug)]
pub struct Combine {
    pub variables: Vec<String>,
    pub strategy: String,
    pub format: Option<String>,
}

/// A transform. Which one it is, the kind decides.
#[derive(Clone, Debug)]
pub struct Transform {
    pub kind: String,
    pub math: Option<Math>,
    pub map: Option<Map<String, Value>>,
    pub matching: Option<Match>,
    pub string: Option<Text>,
    pub convert: Option<Convert>,
}

/// A `math` transform.
#[derive(Clone, Debug)]
pub struct Math {
    pub kind: String,
    pub multiply: Option<i64>,
    pub clamp_min: Option<i64>,
    pub clamp_max: Option<i64>,
}

/// A `match` transform.
#[derive(Clone, Debug)]
pub struct Match {
    pub patterns: Vec<Pattern>,
    pub fallback_value: Value,
    pub fallback_to: String,
}

/// A pattern of a `match` transform.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub kind: String,
    pub literal: Option<String>,
    pub regexp: Option<String>,
    pub result: Value,
}

/// A `string` transform.
#[derive(Clone, Debug)]
pub struct Text {
    pub kind: String,
    pub format: Option<String>,
    pub convert: Option<String>,
    pub trim: Option<String>,
    pub regexp: Option<Regexp>,
    pub separator: Option<String>,
    pub replace: Option<Replace>,
}

/// The settings of a `string` transform of type `Regexp`.
#[derive(Clone, Debug)]
pub struct Regexp {
    pub pattern: String,
    pub group: i64,
}

/// The settings of a `string` transform of type `Replace`.
#[derive(Clone, Debug)]
pub struct Replace {
    pub search: String,
    pub replace: String,
}

/// A `convert` transform.
#[derive(Clone, Debug)]
pub struct Convert {
    pub to: String,
    pub format: Option<String>,
}

/// A connection detail.
#[derive(Clone, Debug)]
pub struct ConnectionDetail {
    pub name: String,
    pub kind: String,
    pub key: Option<String>,
    pub path: Option<String>,
    pub value: Option<String>,
}

/// A readiness check.
#[derive(Clone, Debug)]
pub struct ReadinessCheck {
    pub kind: String,
    pub path: Option<String>,
    pub string: Option<String>,
    pub integer: Option<i64>,
    /// The type and status of the condition.
    pub condition: Option<(String, String)>,
}

/// An object whose fields were checked against their types.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub Option<&'a Map<String, Value>>);

impl<'a> Fields<'a> {
    /// A value that is not null.
    pub fn value(self, key: &str) -> Option<&'a Value> {
        self.0?.get(key).filter(|value| !value.is_null())
    }

    fn any(self, key: &str) -> Value {
        self.value(key).cloned().unwrap_or_default()
    }

    /// A text.
    pub fn text(self, key: &str) -> Option<String> {
        self.value(key)?.as_str().map(str::to_owned)
    }

    /// A text, or an empty one.
    pub fn text_or_empty(self, key: &str) -> String {
        self.text(key).unwrap_or_default()
    }

    /// A whole number.
    pub fn integer(self, key: &str) -> Option<i64> {
        let mut number = self.value(key)?.clone();
        fieldpath::normalize(&mut number);
        // Negative zero is the only whole number that we do not store as an integer.
        number.as_i64().or_else(|| number.as_f64().map(|double| double as i64))
    }

    /// The fields of an object.
    pub fn object(self, key: &str) -> Option<Self> {
        self.value(key)?.as_object().map(|map| Self(Some(map)))
    }

    fn flag(self, key: &str) -> Option<bool> {
        self.value(key)?.as_bool()
    }

    /// The items of a list.
    pub fn list<T>(self, key: &str, read: impl Fn(Self) -> T) -> Vec<T> {
        let items = self.value(key).and_then(Value::as_array).map(Vec::as_slice);
        items.unwrap_or_default().iter().map(|item| read(Self(item.as_object()))).collect()
    }
}

/// Reads a patch.
pub fn patch(fields: Fields<'_>) -> Patch {
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
            merge_options: policy.object("mergeOptions").map(|options| MergeOptions {
                keep_map_values: options.flag("keepMapValues"),
                append_slice: options.flag("appendSlice"),
            }),
        }),
    }
}

/// Reads a transform.
pub fn transform(fields: Fields<'_>) -> Transform {
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

/// Reads a template.
pub fn template(fields: Fields<'_>) -> Template {
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

/// Reads a set of patches.
pub fn patch_set(fields: Fields<'_>) -> PatchSet {
    PatchSet { name: fields.text_or_empty("name"), patches: fields.list("patches", patch) }
}

impl Template {
    /// Adds the defaults that the API server adds to the templates of a Composition.
    pub fn set_defaults(&mut self) {
        self.patches.iter_mut().for_each(Patch::set_defaults);
        if self.readiness_checks.is_empty() {
            self.readiness_checks.push(ReadinessCheck {
                kind: "MatchCondition".to_owned(),
                path: None,
                string: None,
                integer: None,
                condition: Some(("Ready".to_owned(), "True".to_owned())),
            });
        }
    }
}

impl Patch {
    /// Adds the defaults that the API server adds to the patches of a Composition.
    pub fn set_defaults(&mut self) {
        for transform in &mut self.transforms {
            if let Some(math) = transform.math.as_mut().filter(|math| math.kind.is_empty()) {
                "Multiply".clone_into(&mut math.kind);
            }
            if let Some(string) = transform.string.as_mut().filter(|text| text.kind.is_empty()) {
                "Format".clone_into(&mut string.kind);
            }
            let patterns =
                transform.matching.iter_mut().flat_map(|matching| &mut matching.patterns);
            for pattern in patterns.filter(|pattern| pattern.kind.is_empty()) {
                "literal".clone_into(&mut pattern.kind);
            }
        }
    }
}
