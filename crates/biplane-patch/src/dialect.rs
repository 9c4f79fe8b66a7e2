//! What differs between patches of function-patch-and-transform and patches of Compositions.

/// How patches and transforms behave where their two homes disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is a difference of its own
pub struct Dialect {
    /// How a `string` transform of type `Join` joins.
    pub join: Join,
    /// Whether an error of a `convert` transform names the value.
    pub names_converted_value: bool,
    /// Whether the error of a write says that it was a write.
    pub names_write: bool,
    /// Whether a patch that combines values can merge.
    pub merges_combined: bool,
    /// Whether the way to merge is given as options, not as the name of a policy.
    pub has_merge_options: bool,
    /// Whether whole numbers of composed resources are integers. Over the wire they are doubles, and
    /// a check for an integer never passes.
    pub has_integers: bool,
}

/// How a list is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// The separator is between the items.
    Between,
    /// The separator follows every item, and then one byte is cut off the end, whatever the length
    /// of the separator.
    CutByte,
}

impl Dialect {
    /// As in function-patch-and-transform.
    pub const FUNCTION: Self = Self {
        join: Join::CutByte,
        names_converted_value: false,
        names_write: true,
        merges_combined: true,
        has_merge_options: false,
        has_integers: false,
    };

    /// As in a Composition of mode Resources.
    pub const COMPOSITION: Self = Self {
        join: Join::Between,
        names_converted_value: true,
        names_write: false,
        merges_combined: false,
        has_merge_options: true,
        has_integers: true,
    };
}
