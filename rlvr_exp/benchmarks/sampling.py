"""`benchmark=sampling`: tokens a second of our sampler against `generate` of Transformers.

Random weights of the configured model's shape, prompts and completions of the longest lengths, so that both draw exactly as
many tokens. In a real run completions end at different lengths, and ours gains more: a completion leaves the batch as it
ends. Both are also compared with the shortest time that the machine allows (rlvr_exp.benchmarks.machine_limit).
"""

import torch
from torch import nn

from rlvr_exp.benchmarks.contest import of_rounds
from rlvr_exp.benchmarks.machine_limit import MachineLimit, SamplingWork, fastest, seconds_of
from rlvr_exp.benchmarks.memory import measuring, random_model, required_workload, roll_out
from rlvr_exp.config.schema import Config
from rlvr_exp.memory.workload import GIB, SamplingBatch
from rlvr_exp.records.context import RunContext
from rlvr_exp.rollouts.sampler import causal_model


def generate(model: nn.Module, batch: SamplingBatch) -> torch.Tensor:
    """The same completions by the library, (samples, prompt + completion): temperature 1, full vocabulary, no end."""
    inner = causal_model(model)
    prompts = torch.ones((batch.groups, batch.prompt), dtype=torch.long, device=inner.device)
    return inner.generate(
        prompts,
        attention_mask=torch.ones_like(prompts),
        do_sample=True,
        temperature=1.0,
        top_k=0,
        num_return_sequences=batch.size,
        max_new_tokens=batch.completion,
        min_new_tokens=batch.completion,
        pad_token_id=0,
        eos_token_id=-1,
    )


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, float]]:
    """Both in turns, after one of each that is not counted and gives the peaks of memory.

    Raises:
        InputError: the model's shape is unknown.
    """
    workload = required_workload(config)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, batch = random_model(config, workload, device).eval(), workload.sampling_batch
    sides = {"ours": lambda: roll_out(model, workload), "generate": lambda: generate(model, batch)}
    with torch.inference_mode(), measuring(device) as peak:
        peaks = {name: peak(side) for name, side in sides.items()}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    rounds, dtype = config.benchmark.rounds, getattr(torch, workload.dtype)
    limits: list[MachineLimit] = []
    with torch.inference_mode():
        for turn in range(rounds):
            context.progress(kind="phase", name="turn", done=turn, total=rounds)
            for name in list(sides) if turn % 2 == 0 else reversed(sides):
                seconds[name].append(seconds_of(sides[name]))
            limits.append(MachineLimit.measured(dtype, device))
    limit, work = fastest(limits), SamplingWork.of(workload)
    shares = {name: limit.seconds(work) * rounds / sum(one) for name, one in seconds.items()}
    tokens = batch.groups * batch.size * batch.completion
    ratio = of_rounds(seconds["ours"], seconds["generate"])
    per_s = {name: tokens * rounds / sum(one) for name, one in seconds.items()}
    text = (
        f"{batch.groups} prompts of {batch.prompt} tokens x {batch.size} completions of {batch.completion}, {workload.dtype} on "
        f"{device}\n"
        f"ours {per_s['ours']:,.0f} tokens/s, {peaks['ours'] / GIB:.2f} GiB; generate {per_s['generate']:,.0f} tokens/s, "
        f"{peaks['generate'] / GIB:.2f} GiB; {ratio} times faster\n"
        f"limit of the machine on {torch.get_num_threads()} threads: {limit.bytes_per_s / 1e9:.3g} GB/s read, "
        f"{limit.flop_per_s / 1e9:.3g} GFLOP/s in a large product; the batch takes {limit.seconds(work):.3g} s at least, of which "
        f"memory {work.bytes / limit.bytes_per_s:.3g} s or products {work.flop / limit.flop_per_s:.3g} s\n"
        f"share of the limit: ours {shares['ours']:.0%}, generate {shares['generate']:.0%}"
    )
    return text, {
        "faster": ratio.value,
        **{f"per_s/{name}": rate for name, rate in per_s.items()},
        **{f"share_of_limit/{name}": share for name, share in shares.items()},
    }
