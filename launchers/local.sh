#!/usr/bin/env bash
# Run rlvr_exp from this checkout: set up .venv where it is missing or out of date, then go.
#
#   bash launchers/local.sh +stage=grpo
#
# Takes what `python -m rlvr_exp` takes. Works from any folder; runs land in outputs/ of the folder it is called from.
# PYTHON=/path/to/python3.12 chooses the interpreter that .venv is made with (3.11 or newer); pip's own settings hold.
set -euo pipefail
# shellcheck source=launchers/setup.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"
setup
exec "$python" -m rlvr_exp "$@"
