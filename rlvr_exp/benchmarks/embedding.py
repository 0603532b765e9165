"""`benchmark=embedding`: where a policy's network puts the tasks of the data, for the likeness of groups of tasks.

A prompt's embedding is the last layer's output at its last token, from which the answer's first token is drawn.
"""

from typing import Any

import torch

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.models.policy import load_policy
from rlvr_exp.records.context import RunContext

MEAN, PROMPTS = "mean", "prompts"


@torch.no_grad()
def measure(config: Config, context: RunContext) -> tuple[str, dict[str, Any]]:
    """The mean embedding of the first prompts of a split, a number for each unit of the hidden state.

    Raises:
        InputError: the split has no task whose prompt fits.
    """
    policy, domain, options = load_policy(config.model, config.seed), build(config.data), config.benchmark
    tasks = domain.splits().get(options.split, ())[: options.tasks]
    policy.model.eval()
    found: list[torch.Tensor] = []
    for done, task in enumerate(tasks):
        context.progress(kind="phase", name="prompts", done=done, total=len(tasks))
        ids = policy.encode_prompt(domain.task_prompt(task))
        if len(ids) <= min(policy.max_tokens, config.model.max_prompt_tokens):
            given = torch.tensor([ids], device=policy.model.device)
            states = policy.model(input_ids=given, output_hidden_states=True, use_cache=False).hidden_states
            found.append(states[-1][0, -1].double().cpu())
    if not found:
        what, sizes = "no task with a prompt that fits", ", ".join(domain.sizes())
        raise InputError(InputProblem("benchmark.split", what, options.split, sizes, "", "model.max_prompt_tokens=N"))
    mean = torch.stack(found).mean(0).tolist()
    return f"mean embedding of {len(found)} prompts: {len(mean)} numbers", {PROMPTS: len(found), MEAN: mean}
