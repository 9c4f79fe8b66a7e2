//! The input of function-auto-ready, and the sources of its rules.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use biplane_model::Value;
use biplane_proto::Struct;

use biplane_go::types::{Decoder, META, Mismatch, Types};

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    Types::read(&[
        META,
        "v1beta1.Input apiVersion:string kind:string metadata:meta.ObjectMeta ttl:string \
         celHealthCheckCustomization:{}string celHealthCheckCustomizationFrom:string",
    ])
});

/// Why the input could not be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot get function input *v1beta1.Input from *v1.RunFunctionRequest: cannot unmarshal JSON \
     from *structpb.Struct into *v1beta1.Input: {0}"
)]
pub(super) struct InputError(#[from] Mismatch);

#[derive(Debug, Default)]
pub(super) struct Input {
    /// `None` also if it is empty.
    pub(super) ttl: Option<String>,
    inline: BTreeMap<String, String>,
    from_context: Option<String>,
}

impl Input {
    pub(super) fn read(input: Option<&Struct>) -> Result<Self, InputError> {
        let Some(input) = input else { return Ok(Self::default()) };
        TYPES.check(input, "v1beta1.Input", Decoder::Strict)?;
        let text = |key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
        let inline = input.get("celHealthCheckCustomization").and_then(Value::as_object);
        Ok(Self {
            ttl: text("ttl").filter(|ttl| !ttl.is_empty()),
            inline: inline
                .into_iter()
                .flatten()
                .map(|(key, rule)| (key.clone(), rule.as_str().unwrap_or_default().to_owned()))
                .collect(),
            from_context: text("celHealthCheckCustomizationFrom"),
        })
    }

    /// Returns the effective rules by key: those of the context, overridden by those of the input.
    pub(super) fn rules(&self, context: Option<&Struct>) -> BTreeMap<String, String> {
        let shared = self.from_context.as_deref().and_then(|path| {
            let mut parts = path_parts(path).into_iter();
            let first = context?.get(parts.next()?)?;
            parts.try_fold(first, |value, part| value.as_object()?.get(part))?.as_object()
        });
        let shared = shared.into_iter().flatten();
        let shared =
            shared.filter_map(|(key, rule)| Some((key.clone(), rule.as_str()?.to_owned())));
        shared.chain(self.inline.clone()).collect()
    }
}

/// Splits at dots, except within brackets. Unmatched brackets count as separators.
fn path_parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        if first == '[' {
            let inner = &rest[1..];
            let end = inner.find(['[', ']']).filter(|end| inner[*end..].starts_with(']'));
            if let Some(end) = end.filter(|end| *end > 0) {
                parts.push(&inner[..end]);
                rest = &inner[end + 1..];
                continue;
            }
        }
        if matches!(first, '.' | '[' | ']') {
            rest = &rest[1..];
            continue;
        }
        let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::{Input, path_parts};
    use biplane_model::Object;
    use serde_json::{Value, json};

    fn read(input: Value) -> Result<Input, super::InputError> {
        Input::read(Some(&Object::from_value(input).unwrap().into()))
    }

    /// AR-24.
    #[test]
    fn paths_split_at_dots_and_take_brackets_literally() {
        for (path, parts) in [
            (
                "[apiextensions.crossplane.io/environment].rules",
                vec!["apiextensions.crossplane.io/environment", "rules"],
            ),
            ("a.b", vec!["a", "b"]),
            ("a[b]c", vec!["a", "b", "c"]),
            ("['a']", vec!["'a'"]),
            ("a..b.", vec!["a", "b"]),
            ("[]a[", vec!["a"]),
            ("[a.b", vec!["a", "b"]),
            ("[a[b.c]]", vec!["a", "b.c"]),
            ("é[ü.ö]", vec!["é", "ü.ö"]),
            ("", vec![]),
        ] {
            assert_eq!(path_parts(path), parts, "{path}");
        }
    }

    /// AR-23 and AR-25.
    #[test]
    fn inline_rules_win_over_those_of_the_context() {
        let context =
            Object::from_value(json!({"c": {"r": {"a": "1", "b": "2", "n": 3}}})).unwrap();
        let context = context.into();
        let input = json!({"celHealthCheckCustomizationFrom": "c.r",
            "celHealthCheckCustomization": {"b": "inline", "z": null}});
        let rules = read(input).unwrap().rules(Some(&context));
        let rules: Vec<_> = rules.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(rules, [("a", "1"), ("b", "inline"), ("z", "")]);
        for path in ["", "c.nothing", "c.r.a", "c.r.a.b", "c.r[0]"] {
            let input = json!({"celHealthCheckCustomizationFrom": path,
                "celHealthCheckCustomization": {"b": "inline"}});
            assert_eq!(read(input).unwrap().rules(Some(&context)).len(), 1, "{path}");
        }
        assert!(
            read(json!({"celHealthCheckCustomizationFrom": "c"})).unwrap().rules(None).is_empty()
        );
    }

    /// AR-4.
    #[test]
    fn refuses_members_it_does_not_know() {
        assert_eq!(
            read(json!({"spec": {"ttl": "5m"}})).unwrap_err().to_string(),
            "cannot get function input *v1beta1.Input from *v1.RunFunctionRequest: cannot unmarshal JSON from \
             *structpb.Struct into *v1beta1.Input: json: cannot unmarshal Go value of type v1beta1.Input: \
             unknown name \"spec\""
        );
        for input in
            [json!({"TTL": "5m"}), json!({"ttl": 5}), json!({"metadata": {"labels": {"a": 1}}})]
        {
            assert!(read(input).is_err());
        }
        assert!(
            read(json!({"metadata": {"name": "x", "creationTimestamp": null}, "ttl": null}))
                .is_ok()
        );
    }
}
