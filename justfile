# The things a person types; each calls cargo or xtask.

# Lint everything.
check:
    cargo clippy --workspace --all-targets -- -D warnings

# Everything that must pass, in order.
test:
    cargo xtask test

# Write generated files.
gen:
    cargo xtask codegen

# Check the house rules that no lint knows.
tidy:
    cargo xtask tidy --check

# Measure.
bench:
    cargo bench --workspace

# What decides whether a change is good.
ci:
    .ci/run
