# What a person types; each recipe calls cargo or xtask.

# List the recipes.
default:
    @just --list

# Lint everything.
check:
    cargo clippy --workspace --all-targets -- -D warnings

# Run everything that must pass, and list all that failed.
test *args:
    cargo xtask test {{ if args == "" { "" } else { "-- " + args } }}

# Run every test in a process of its own, in random order.
test-alone *args:
    cargo xtask test-alone {{args}}

# Write the generated files.
gen:
    cargo xtask codegen

# Check the house rules that no lint knows.
tidy:
    cargo xtask tidy --check

# Rewrite snapshots, help texts and recordings from what the code does now; then read the diff. Tests that
# record fail once, so the result counts only when the tests are run again.
bless *args:
    INSTA_UPDATE=always RECORD_APISERVER=1 RECORD_KUBECTL=1 cargo test --workspace --no-fail-fast {{args}}

# Give the built-in functions inputs that hurt for some minutes, and print what they cost.
torture *args:
    cargo xtask torture {{args}}

# Measure.
bench *args:
    cargo bench --workspace {{args}}

# Measure what inspection adds to a function call, and what recording and replaying cost.
bench-recorder:
    cargo bench --package biplane-runner --bench inspected
    cargo build --release --package biplane
    cargo bench --package biplane-recorder --bench recorder
    cargo bench --package biplane --bench replay

# Measure the recorder's pages, readers who follow the news, and a replay; a million steps take minutes.
bench-pages steps="1000000":
    STEPS={{steps}} cargo bench --package biplane-pages --bench pages
    cargo bench --package biplane --bench replay

# Measure the control plane on a real API server, alone on the machine: minutes.
bench-controlplane xrs="1000" rest="180":
    cargo bench --package biplane --bench controlplane -- --xrs {{xrs}} --rest {{rest}}

# Look for known vulnerabilities in the dependencies. Needs a network and cargo-deny.
advisories:
    cargo deny check advisories

# Make the archive that people install from.
dist:
    cargo xtask dist

# Run what continuous integration runs.
ci:
    .ci/run
