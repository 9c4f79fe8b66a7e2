//! Readiness by a rule of the user's, an expression over the observed object.

use std::collections::BTreeMap;

use biplane_model::Object;

/// Asks rules.
#[derive(Debug, Default)]
pub(super) struct Rules {}

impl Rules {
    /// What the rule for the object's kind says; nothing when there is none.
    #[expect(clippy::unused_self, reason = "compiled rules will be kept here")]
    pub(super) fn ask(
        &self,
        rules: &BTreeMap<String, String>,
        object: &Object,
    ) -> Option<Result<bool, String>> {
        let _rule = rules.get(&key(object))?;
        None
    }
}

/// `group_version_kind` of the object, with an empty group for the core kinds.
fn key(object: &Object) -> String {
    let kind = object.kind();
    match object.api_version().split('/').collect::<Vec<_>>()[..] {
        [""] | ["", ""] => format!("__{kind}"),
        [version] => format!("_{version}_{kind}"),
        [group, version] => format!("{group}_{version}_{kind}"),
        // Nobody can say what this is, and Go does not try.
        _ => "__".to_owned(),
    }
}
