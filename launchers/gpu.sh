#!/usr/bin/env bash
# Try on this machine's GPU what a machine without one cannot: correctness, speed and memory, in pieces.
#
#   bash launchers/gpu.sh                        every piece that has no result yet, most useful first; about an hour
#   bash launchers/gpu.sh --seconds 540          those that end within nine minutes; call it again for the others
#   bash launchers/gpu.sh packing training_7b    these pieces, anew
#   bash launchers/gpu.sh --rehearse             every piece at its smallest, on the CPU
#   bash launchers/gpu.sh pack --python 3.12 --have FILE
#                                                for a machine without network: what its `pip list` lacks, into gpu_pack/
#
# Results: outputs/gpu/gpu.json and gpu.md, a run directory for each piece beside them. Uses the packages that are there:
# those of .venv, else those of PYTHON (python3) with gpu_pack/ in front; nothing is installed.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
cd "$root"
python=$root/.venv/bin/python
[[ -x $python ]] || python=${PYTHON:-python3}
if [[ -d gpu_pack ]]; then
    export PYTHONPATH=$root/gpu_pack/needed:$root/gpu_pack/optional
fi
exec "$python" launchers/gpu_kit.py "$@"
