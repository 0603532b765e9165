#!/usr/bin/env bash
# One run of rlvr_exp on one or more machines under Slurm, from a checkout on a file system that all of them see.
#
#   sbatch --nodes=2 --gpus-per-node=4 launchers/slurm.sh +stage=grpo model=qwen14b parallel=zero2
#
# Submit from the checkout's root, or set RLVR_EXP to it. Takes what `python -m rlvr_exp` takes; machines, processes (one a
# GPU) and the place to meet are filled in. Without run.dir the run lands in outputs/slurm_JOB. Two minutes before its time
# is up, and when it is preempted, the job is told, writes a checkpoint and ends with 130. Queued again, it goes on from there.
# A rank that dies ends the whole job with its exit code.
#SBATCH --job-name=rlvr_exp
#SBATCH --ntasks-per-node=1
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=slurm_%j.txt
set -euo pipefail

cd "${RLVR_EXP:-${SLURM_SUBMIT_DIR:?start this with sbatch}}"
words=("$@")
[[ " $* " == *" run.dir="* ]] || words+=("run.dir=outputs/slurm_$SLURM_JOB_ID")
[[ " $* " == *" parallel="* ]] || words+=(parallel=ddp)
[[ " $* " == *" parallel.processes="* ]] || words+=("parallel.processes=${SLURM_GPUS_ON_NODE:-1}")
((${SLURM_RESTART_COUNT:-0} == 0)) || [[ " $* " == *" run.resume="* ]] || words+=(run.resume=auto)
if ((SLURM_JOB_NUM_NODES > 1)); then
    first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
    # Above the ports that services use, another two for each job.
    words+=("parallel.nodes=$SLURM_JOB_NUM_NODES" "parallel.address=$first" "parallel.port=$((20000 + SLURM_JOB_ID % 10000 * 2))")
fi

# Once, before the machines start: they would make the environment at the same time.
bash launchers/local.sh --version
code=0
# shellcheck disable=SC2016 # SLURM_NODEID is another on each machine.
srun --ntasks-per-node=1 --kill-on-bad-exit=1 bash -c '
    ((SLURM_JOB_NUM_NODES == 1)) || set -- "$@" "parallel.node=$SLURM_NODEID"
    exec bash launchers/local.sh "$@"' launch "${words[@]}" || code=$?
# A job that ends within the time that preemption leaves it counts as complete, and Slurm alone would not queue it again.
if ((code)) && scontrol show job "$SLURM_JOB_ID" | grep -q "PreemptTime=[0-9]"; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
