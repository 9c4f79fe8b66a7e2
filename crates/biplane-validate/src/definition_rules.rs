//! The rules of XRDs that Crossplane v1 checked in its webhook, beside those of their schema.

use biplane_go::fmt::quote;
use biplane_model::{Object, Value};

/// What is wrong with a new definition.
pub fn on_create(definition: &Object) -> Vec<String> {
    let given = |path: &[&str]| definition.at(path).is_some_and(|value| !value.is_null());
    let webhook = definition.str_at(&["spec", "conversion", "strategy"]) == "Webhook";
    if webhook && !given(&["spec", "conversion", "webhook", "clientConfig"]) {
        return vec![
            "spec.conversion.webhook: Required value: webhook configuration is required when conversion strategy is \"Webhook\""
                .to_owned(),
        ];
    }
    Vec::new()
}

/// What is wrong with a changed definition.
pub fn on_update(definition: &Object, old: &Object) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut immutable = |path: [&str; 3]| {
        let path: Vec<&str> = path.into_iter().filter(|step| !step.is_empty()).collect();
        let new = definition.str_at(&path);
        if new != old.str_at(&path) {
            let field = path.join(".");
            wrong.push(format!("{field}: Invalid value: {}: field is immutable", quote(new)));
        }
    };
    immutable(["spec", "group", ""]);
    immutable(["spec", "names", "plural"]);
    immutable(["spec", "names", "kind"]);
    let claims = |object: &Object| object.at(&["spec", "claimNames"]).is_some_and(Value::is_object);
    if claims(definition) && claims(old) {
        immutable(["spec", "claimNames", "plural"]);
        immutable(["spec", "claimNames", "kind"]);
    }
    wrong.extend(on_create(definition));
    wrong
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value)] // literals are easier to read

    use super::*;
    use serde_json::json;

    fn definition(spec: Value) -> Object {
        Object::from_value(json!({"metadata": {"name": "xs.x.org"}, "spec": spec})).unwrap()
    }

    /// XRDV-1
    #[test]
    fn a_webhook_needs_its_configuration() {
        let want = "spec.conversion.webhook: Required value: webhook configuration is required when conversion strategy is \"Webhook\"";
        for conversion in [
            json!({"strategy": "Webhook"}),
            json!({"strategy": "Webhook", "webhook": {}}),
            json!({"strategy": "Webhook", "webhook": {"clientConfig": null}}),
        ] {
            assert_eq!(on_create(&definition(json!({"conversion": conversion}))), [want]);
        }
        let fine =
            json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x"}}});
        assert_eq!(on_create(&definition(json!({"conversion": fine}))), [""; 0]);
        assert_eq!(on_create(&definition(json!({"conversion": {"strategy": "None"}}))), [""; 0]);
    }

    /// XRDV-2, XRDV-3
    #[test]
    fn names_are_immutable_and_claims_may_come_and_go() {
        let names = |plural: &str, kind: &str| json!({"plural": plural, "kind": kind});
        let spec = |group: &str, own: Value, claims: Value| {
            definition(json!({"group": group, "names": own, "claimNames": claims}))
        };
        let old = spec("x.org", names("xs", "X"), names("cs", "C"));
        let new = spec("y.org", names("ys", "Y"), names("ds", "D"));
        assert_eq!(
            on_update(&new, &old),
            [
                "spec.group: Invalid value: \"y.org\": field is immutable",
                "spec.names.plural: Invalid value: \"ys\": field is immutable",
                "spec.names.kind: Invalid value: \"Y\": field is immutable",
                "spec.claimNames.plural: Invalid value: \"ds\": field is immutable",
                "spec.claimNames.kind: Invalid value: \"D\": field is immutable",
            ]
        );
        let without = spec("x.org", names("xs", "X"), Value::Null);
        assert_eq!(on_update(&without, &old), [""; 0]);
        assert_eq!(on_update(&old, &without), [""; 0]);
    }
}
