#!/usr/bin/env bash
# Run the tests of this checkout in the environment that launchers/local.sh uses, made first where it is missing.
#
#   bash launchers/test.sh                      a selection: no slow tests, and few of the cases of a test that has many
#   bash launchers/test.sh --all                everything: long real runs, searches over many tasks, every case of each corpus
#   bash launchers/test.sh -m exact             every kill of every stage that trains, resumed and compared bit for bit
#   bash launchers/test.sh tests/core -k hash   arguments go to pytest; paths are relative to the checkout
#
# Where Dafny is missing it is installed (as root, with apt); without it the tests that need it are skipped and say so.
set -euo pipefail
# shellcheck source=launchers/setup.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"
setup
bring_dafny again
cd "$root"
if [[ ${1:-} == --all ]]; then
    export RLVR_EVERY_CASE=1 # All cases of each corpus, and more examples of each property
    set -- -m "not exact and not gpu" "${@:2}"
fi
# A file's tests share their workers, so they stay in one process; in order, since the files with few tests are the slow ones.
exec "$python" -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder "$@"
