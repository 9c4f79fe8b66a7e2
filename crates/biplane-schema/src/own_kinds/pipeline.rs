//! The pipeline of functions, as Compositions and Operations have it.

use super::shape::{Shape, any_object, choice, list, named, object, object_of_texts, text, texts};

/// The steps. `checked` says whether a source of credentials must have what it needs.
pub(super) fn steps(checked: bool) -> Shape {
    list(step(checked)).keyed(&["step"])
}

/// The steps, of which there must be some.
pub(super) fn some_steps(checked: bool) -> Shape {
    steps(checked).with("minItems", 1).with("maxItems", 99)
}

fn step(checked: bool) -> Shape {
    let mut credential = object([
        ("name*", text()),
        ("source*", choice(&["None", "Secret"])),
        ("secretRef", object_of_texts(["name*", "namespace*"])),
    ]);
    if checked {
        credential = credential.rule(
            "self.source == 'Secret' && has(self.secretRef)",
            "the Secret source requires a secretRef",
        );
    }
    object([
        ("step*", text()),
        ("functionRef*", named()),
        ("input", any_object().with("x-kubernetes-embedded-resource", true)),
        ("credentials", list(credential).keyed(&["name"])),
        ("requirements", requirements()),
    ])
}

fn requirements() -> Shape {
    let schema = object_of_texts(["requirementName*", "apiVersion*", "kind*"]);
    let resource = schema
        .clone()
        .and([("name", text()), ("namespace", text()), ("matchLabels", texts())])
        .rule(
            "!(has(self.name) && has(self.matchLabels))",
            "name and matchLabels are mutually exclusive",
        );
    object([
        ("requiredResources", list(resource).keyed(&["requirementName"])),
        ("requiredSchemas", list(schema).keyed(&["requirementName"])),
    ])
}

pub(super) fn mode() -> Shape {
    choice(&["Pipeline"]).default("Pipeline")
}
