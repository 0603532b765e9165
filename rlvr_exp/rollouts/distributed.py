"""Work sharded over the ranks of a run: each rank takes its shard, then all ranks gather all results in their order.

Decisions that follow from the results (advantages, filters, accounting, the curriculum) are then the same on every rank,
because they are the same computation on the same values: ranks cannot diverge. A single process takes everything and
sends nothing. Every function here except `rank`, `ranks` and `shard` is collective: all ranks call it, in the same order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

import torch.distributed as dist

from rlvr_exp.models.parameters import gathered_weights

Item = TypeVar("Item")
Result = TypeVar("Result")
Generate = TypeVar("Generate", bound=Callable[..., Any])


def ranks() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def shard(items: Sequence[Item]) -> list[Item]:
    """This rank's shard, every n-th item. Neighbours in a sorted list take similar time, so they go to different
    ranks."""
    return list(items[rank() :: ranks()])


def interleave(shares: Sequence[Sequence[Result]]) -> list[Result]:
    """The ranks' results for their shards, as `shard` cut them, in the order of all items."""
    longest = max(map(len, shares))
    return [share[place] for place in range(longest) for share in shares if place < len(share)]


def data_parallel(generate: Generate) -> Generate:
    """Decorate a function that serves requests: each rank serves its shard with gathered weights, all gather all results.

    `generate(policy, domain, verifier, requests, ...)` returns a dataclass with `completions`, an entry for each request,
    and `seconds`; the seconds become those of the slowest rank. A rank with an empty shard generates nothing, and waits.
    """

    @wraps(generate)
    def together(policy: Any, domain: Any, verifier: Any, requests: Sequence[Any], *rest: Any, **named: Any) -> Any:
        with gathered_weights(policy.model):
            own = generate(policy, domain, verifier, shard(requests), *rest, **named)
        return all_gather_rollouts(own)

    return cast(Generate, together)


def all_gather_rollouts(own: Any) -> Any:
    """The results of all ranks for their shards: a dataclass with `completions`, in the order of `shard`, and `seconds`."""
    if ranks() == 1:
        return own
    all_of_them = all_gather_object((list(own.completions), dict(own.seconds)))
    names = dict.fromkeys(name for _, seconds in all_of_them for name in seconds)
    slowest = {name: max(seconds.get(name, 0.0) for _, seconds in all_of_them) for name in names}
    return replace(own, completions=tuple(interleave([completions for completions, _ in all_of_them])), seconds=slowest)


def any_rank(flag: bool) -> bool:
    """Whether the flag is set on any rank: ranks that receive a stop signal at different moments stop at the same step."""
    return flag if ranks() == 1 else any(all_gather_object(flag))


def broadcast_object(value: Result) -> Result:
    """The value of rank 0, on every rank."""
    return value if ranks() == 1 else all_gather_object(value)[0]


def all_reduce_counters(counters: Mapping[str, float]) -> dict[str, float]:
    """Counters summed over the ranks; those that are rates (`..._rate`) are averaged."""
    if ranks() == 1:
        return dict(counters)
    rows: list[Mapping[str, float]] = all_gather_object(dict(counters))
    sums = {
        name: sum(row.get(name, 0.0) for row in rows) for name in dict.fromkeys(name for row in rows for name in row)
    }
    return {name: value / ranks() if name.endswith("_rate") else value for name, value in sums.items()}


def all_gather_object(value: Any) -> list[Any]:
    """The values of all ranks, in their order."""
    if ranks() == 1:
        return [value]
    found = [None] * ranks()
    dist.all_gather_object(found, value)
    return found
