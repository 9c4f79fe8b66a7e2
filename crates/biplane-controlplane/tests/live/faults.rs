//! Tests with API servers and watches that fail.
