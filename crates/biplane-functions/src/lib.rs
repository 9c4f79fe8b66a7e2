//! The functions in the box.
