"""Work shared by the ranks of a run: each takes its share, then all hold all results, in the order of the whole.

What is decided from the results (advantages, filters, books, the curriculum) is then the same on every rank, because it
is the same computation on the same values: ranks cannot diverge. Alone, a process takes everything and nothing is sent.
Every function here but `rank`, `ranks` and `shard` is collective: all ranks call it, in the same order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

import torch.distributed as dist

from rlvr_exp.models.zero3 import gathered_weights

Item = TypeVar("Item")
Result = TypeVar("Result")
Generate = TypeVar("Generate", bound=Callable[..., Any])


def ranks() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def shard(items: Sequence[Item]) -> list[Item]:
    """This rank's share, dealt one by one: neighbours in a sorted list, which take alike long, go to several ranks."""
    return list(items[rank() :: ranks()])


def interleave(shares: Sequence[Sequence[Result]]) -> list[Result]:
    """What the ranks made of their shares, as `shard` dealt them, in the order of the whole."""
    longest = max(map(len, shares))
    return [share[place] for place in range(longest) for share in shares if place < len(share)]


def data_parallel(generate: Generate) -> Generate:
    """Around a function that answers questions: each rank answers its share with the weights whole, all get all.

    `generate(policy, domain, verifier, requests, ...)` returns a dataclass with `completions`, one for each question, and
    `seconds`; the seconds become those of the slowest rank. A rank without a share answers nothing, and waits.
    """

    @wraps(generate)
    def together(policy: Any, domain: Any, verifier: Any, requests: Sequence[Any], *rest: Any, **named: Any) -> Any:
        with gathered_weights(policy.model):
            own = generate(policy, domain, verifier, shard(requests), *rest, **named)
        return all_gather_rollouts(own)

    return together


def all_gather_rollouts(own: Any) -> Any:
    """What all ranks made of their shares: of a dataclass with `completions`, dealt by `shard`, and `seconds`."""
    if ranks() == 1:
        return own
    all_of_them = _of_all((list(own.completions), dict(own.seconds)))
    names = dict.fromkeys(name for _, seconds in all_of_them for name in seconds)
    slowest = {name: max(seconds.get(name, 0.0) for _, seconds in all_of_them) for name in names}
    return replace(own, completions=tuple(interleave([completions for completions, _ in all_of_them])), seconds=slowest)


def any_rank(flag: bool) -> bool:
    """Whether it holds on any rank: ranks that were told to stop at different moments stop at one."""
    return flag if ranks() == 1 else any(_of_all(flag))


def broadcast_object(value: Result) -> Result:
    """Rank 0's value."""
    return value if ranks() == 1 else _of_all(value)[0]


def all_reduce_counters(counters: Mapping[str, float]) -> dict[str, float]:
    """Counters summed over the ranks; those that are rates (`..._rate`) are averaged."""
    if ranks() == 1:
        return dict(counters)
    rows: list[Mapping[str, float]] = _of_all(dict(counters))
    sums = {
        name: sum(row.get(name, 0.0) for row in rows) for name in dict.fromkeys(name for row in rows for name in row)
    }
    return {name: value / ranks() if name.endswith("_rate") else value for name, value in sums.items()}


def _of_all(value: Any) -> list[Any]:
    found = [None] * ranks()
    dist.all_gather_object(found, value)
    return found
