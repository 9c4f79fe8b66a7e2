//! Finds the Composition and the definition of nested composite resources.

use std::path::PathBuf;

use anyhow::{Result, bail};
use biplane_go::fmt::quote;
use biplane_manifest::Loader;
use biplane_model::claim;
use biplane_model::layout::Layout;
use biplane_model::selection::{Selection, composes};
use biplane_model::{Gvk, Object};

/// The given Compositions and definitions.
#[derive(Clone, Debug, Default)]
pub(super) struct Nested {
    pub(super) compositions: Vec<Object>,
    pub(super) definitions: Vec<Object>,
}

impl Nested {
    /// Reads files, and directories recursively. Documents of other kinds are ignored, so that a
    /// directory may hold other parts of an API.
    pub(super) fn load(&mut self, paths: &[PathBuf], loader: &mut Loader<'_, '_>) -> Result<()> {
        for path in paths {
            let (compositions, definitions) = loader.compositions(path)?;
            self.compositions.extend(compositions);
            self.definitions.extend(definitions);
        }
        Ok(())
    }

    /// The definition of a kind of composite resource.
    pub(super) fn definition(&self, gvk: &Gvk) -> Option<&Object> {
        self.definitions.iter().find(|definition| defines(definition, gvk))
    }

    /// Whether an object is a claim.
    pub(super) fn is_claim(&self, object: &Object) -> bool {
        self.definitions.iter().any(|definition| claim::is_claim(object, definition))
    }

    /// The Composition of an object, if it is a composite resource of a kind with Compositions. It is
    /// the one that a control plane selects, but where that takes any one of several, this fails.
    pub(super) fn composition(&self, object: &Object) -> Result<Option<&Object>> {
        let mut fitting: Vec<_> =
            self.compositions.iter().filter(|composition| composes(composition, object)).collect();
        if fitting.is_empty() {
            return Ok(None);
        }
        let definition = self.definition(&object.gvk());
        let layout = definition.map_or(Layout::Modern, Layout::of_definition);
        match Selection::of(object, layout, definition) {
            // Whether it fits is for the control plane to say.
            Selection::Enforced(name) | Selection::Named(name) | Selection::Default(name) => {
                let found = self.compositions.iter().find(|one| one.name() == name);
                let Some(found) = found else {
                    bail!("{} uses Composition {}, which is not given", object.id(), quote(&name));
                };
                return Ok(Some(found));
            }
            Selection::Labels(labels) => {
                let labels = || labels.iter().map(|(key, value)| (&**key, &**value));
                fitting.retain(|composition| composition.has_labels(labels()));
            }
        }
        match fitting.as_slice() {
            [one] => Ok(Some(one)),
            [] => bail!("no Composition that is given has the labels that {} selects", object.id()),
            several => {
                let names: Vec<_> = several.iter().map(|one| one.name()).collect();
                let names = names.join(", ");
                bail!(
                    "several Compositions fit {}: {names}; name one in its compositionRef",
                    object.id()
                )
            }
        }
    }
}

/// Whether a definition defines a kind of composite resource.
pub(super) fn defines(definition: &Object, gvk: &Gvk) -> bool {
    definition.str_at(&["spec", "names", "kind"]) == gvk.kind
        && definition.str_at(&["spec", "group"]) == gvk.group
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value)] // literals are easier to read

    use biplane_model::Value;
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn composition(name: &str, labels: &Value) -> Object {
        let type_ref = json!({"apiVersion": "example.org/v1", "kind": "XPart"});
        object(json!({"metadata": {"name": name, "labels": labels},
            "spec": {"compositeTypeRef": type_ref}}))
    }

    fn definition(more: Value) -> Object {
        let mut spec = json!({"group": "example.org", "names": {"kind": "XPart"}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object(json!({"apiVersion": "apiextensions.crossplane.io/v1", "spec": spec}))
    }

    fn part(spec: Value) -> Object {
        object(json!({"apiVersion": "example.org/v1", "kind": "XPart",
            "metadata": {"name": "p"}, "spec": spec}))
    }

    /// The name of the selected Composition, or the error.
    fn chosen(definitions: &[Object], xr: Value) -> String {
        let nested = Nested {
            compositions: vec![
                composition("a", &json!({"tier": "gold"})),
                composition("b", &json!({"tier": "tin", "cheap": "yes"})),
                composition("c", &json!({"tier": "tin"})),
            ],
            definitions: definitions.to_vec(),
        };
        match nested.composition(&part(xr)) {
            Ok(found) => found.map_or("none", Object::name).to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// SEL-1 to SEL-5
    #[test]
    fn a_composition_is_enforced_or_named_or_selected_or_the_default() {
        let legacy = |more| [definition(more)];
        let modern = |spec: Value| json!({"crossplane": spec});
        let by_name = |name: &str| json!({"compositionRef": {"name": name}});
        let by_label = |labels: Value| json!({"compositionSelector": {"matchLabels": labels}});
        let several =
            "several Compositions fit XPart.example.org p: a, b, c; name one in its compositionRef";
        assert_eq!(chosen(&[], json!({})), several);
        assert_eq!(chosen(&[], modern(by_name("b"))), "b");
        assert_eq!(chosen(&[], by_name("b")), several);
        assert_eq!(chosen(&legacy(json!({})), by_name("b")), "b");
        assert_eq!(chosen(&[], modern(by_label(json!({"tier": "gold"})))), "a");
        assert_eq!(chosen(&[], modern(by_label(json!({"tier": "tin", "cheap": "yes"})))), "b");
        assert_eq!(
            chosen(&[], modern(by_label(json!({"tier": "none"})))),
            "no Composition that is given has the labels that XPart.example.org p selects"
        );
        assert_eq!(
            chosen(&[], modern(by_name("x"))),
            r#"XPart.example.org p uses Composition "x", which is not given"#
        );
        let default = legacy(json!({"defaultCompositionRef": {"name": "c"}}));
        assert_eq!(chosen(&default, json!({})), "c");
        assert_eq!(chosen(&default, by_name("b")), "b");
        // An empty selector selects, so that the default does not count.
        let any = json!({"compositionSelector": {"matchLabels": {}}});
        assert_eq!(chosen(&default, any), several);
        assert_eq!(chosen(&default, json!({"compositionSelector": {}})), several);
        let missing = legacy(json!({"defaultCompositionRef": {"name": "x"}}));
        assert_eq!(
            chosen(&missing, json!({})),
            r#"XPart.example.org p uses Composition "x", which is not given"#
        );
        let enforced = legacy(json!({"enforcedCompositionRef": {"name": "c"}}));
        assert_eq!(chosen(&enforced, by_name("b")), "c");
    }

    #[test]
    fn an_object_of_another_kind_or_version_has_no_composition() {
        let nested =
            Nested { compositions: vec![composition("a", &json!({}))], ..Nested::default() };
        for (api_version, kind) in [("example.org/v2", "XPart"), ("example.org/v1", "Part")] {
            let other = object(json!({"apiVersion": api_version, "kind": kind}));
            assert_eq!(nested.composition(&other).unwrap(), None);
        }
        assert!(nested.composition(&part(json!({}))).unwrap().is_some());
    }
}
