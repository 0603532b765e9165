"""The memory of vLLM in the process that trains. It has its own copy of the weights and its own cache.

On a GPU it takes its share during rollouts and sleeps in the other phases. On a CPU it does not sleep.
"""

from dataclasses import replace

from rlvr_exp.config.engine import BLOCK_ON_CPU, LONGEST_ON_CPU, ROWS_OF_VLLM, TOKENS_OF_VLLM
from rlvr_exp.memory import counts
from rlvr_exp.memory.workload import GIB, WIDTH, Workload

IMPORTED = 0.14 * GIB
"""vLLM's own libraries on a CPU, measured."""
ASLEEP = 1.0 * GIB
"""CUDA graphs and workspaces, which sleep does not free. An estimate: not measured."""


def weights(workload: Workload) -> float:
    """vLLM's copy of the weights. A quantised base is quantised in vLLM too."""
    assert workload.vllm is not None
    return counts.weights(replace(workload, dtype=workload.vllm.dtype))


def token(workload: Workload) -> float:
    """Keys and values of a token."""
    assert workload.vllm is not None
    shape = workload.shape
    return 2.0 * shape.layers * shape.kv_heads * shape.head_dim * WIDTH[workload.vllm.dtype]


def passes(workload: Workload) -> float:
    """A pass without gradients and the logits of all rows, as vLLM measures them when it is built."""
    assert workload.vllm is not None
    shape, width = workload.shape, WIDTH[workload.vllm.dtype]
    return (
        TOKENS_OF_VLLM * width * (4.0 * shape.hidden + 3.0 * shape.intermediate)
        + 2.0 * ROWS_OF_VLLM * shape.vocabulary * 4.0
    )


def awake(workload: Workload) -> float:
    """vLLM's memory during a rollout."""
    assert workload.vllm is not None
    if not workload.cpu:
        return workload.vllm.models * (workload.vllm.limit + ASLEEP)
    own = weights(workload) + passes(workload) + cache_on_cpu(workload)
    return IMPORTED + workload.vllm.models * own


def cache_on_cpu(workload: Workload) -> float:
    """Keys and values, reserved when vLLM is built."""
    assert workload.vllm is not None
    return min(LONGEST_ON_CPU * (workload.vllm.longest + BLOCK_ON_CPU) * token(workload), workload.vllm.limit)


def asleep(workload: Workload) -> float:
    """vLLM's memory outside of rollouts."""
    assert workload.vllm is not None
    return awake(workload) if workload.cpu else workload.vllm.models * ASLEEP


def least(workload: Workload) -> float:
    """The smallest share of a GPU, in bytes, with which vLLM starts."""
    assert workload.vllm is not None
    return weights(workload) + passes(workload) + workload.vllm.longest * token(workload)


def at_once(workload: Workload) -> int:
    """Completions of the longest length that a GPU's share holds at the same time. Those of a group share their prompt."""
    assert workload.vllm is not None
    batch = workload.sampling_batch
    tokens = int((workload.vllm.limit - weights(workload) - passes(workload)) / token(workload))
    groups, rest = divmod(tokens, batch.prompt + batch.size * batch.completion)
    return groups * batch.size + max(0, (rest - batch.prompt) // batch.completion)
