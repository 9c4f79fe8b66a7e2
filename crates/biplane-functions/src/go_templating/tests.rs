//! Tests of settings and of what is not in the recordings.
