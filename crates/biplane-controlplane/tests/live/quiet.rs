//! Tests that count requests.
