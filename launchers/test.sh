#!/usr/bin/env bash
# Check this checkout in the environment of launchers/local.sh, which is set up first if it is missing. Stops at the first
# failing step.
#
#   bash launchers/test.sh unit                 style, types, and the tests that need neither a process nor torch
#   bash launchers/test.sh                      style, types, unit tests, then the other tests: no slow ones, and few of the
#                                               cases of a test that has many. CI runs this.
#   bash launchers/test.sh --all                style, types, and every test: long real runs, searches, all cases
#   bash launchers/test.sh lint                 style and types only
#   bash launchers/test.sh -m exact             every kill of every stage that trains, resumed and compared bit for bit
#   bash launchers/test.sh tests/core -k hash   other words go to pytest, without the checks of style and types; paths are
#                                               relative to the checkout
#
# `unit` and --all take further words for pytest: `launchers/test.sh unit -k reward`. tests/unit_tier.py lists the unit tests.
# If the set-up could not install .NET and z3, the tests that need Dafny are skipped and say so.
set -euo pipefail
# shellcheck source=launchers/setup.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"
setup
cd "$root"

# step NAME COMMAND...: run a command under a heading; its failure ends the script.
step() {
    local name=$1 began=$SECONDS code=0
    shift
    printf '\n=== %s: %s\n' "$name" "$(printf '%q ' "${@/#"$python"/python}")"
    "$@" || code=$?
    if ((code != 0)); then
        printf '\n=== FAILED: %s (exit code %s, %s s)\n' "$name" "$code" "$((SECONDS - began))" >&2
        exit "$code"
    fi
    printf '=== passed: %s (%s s)\n' "$name" "$((SECONDS - began))"
}

lint() {
    step "style" "$python" -m ruff check --output-format=concise
    step "format" "$python" -m ruff format --check
    step "types" "$python" -m mypy
}

# The tests of a file share their workers, so they stay in one process; in order, since the files with few tests are slow.
tests=("$python" -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder)

case ${1:-} in
lint)
    lint
    ;;
unit)
    lint
    step "unit tests" "$python" -m pytest --numprocesses 0 --tier=unit "${@:2}"
    ;;
--all)
    lint
    export RLVR_EVERY_CASE=1 # All cases of each corpus, and more examples of each property
    step "all tests" "${tests[@]}" -m "not exact and not gpu" "${@:2}"
    ;;
"")
    lint
    step "unit tests" "${tests[@]}" --tier=unit
    step "other tests" "${tests[@]}" --tier=rest
    ;;
*)
    exec "${tests[@]}" "$@"
    ;;
esac
