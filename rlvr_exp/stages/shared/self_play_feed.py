"""Feeds a training run with rounds of self-play: a round is made before its first update, and its updates imitate gold and
self-made rows in fixed shares."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvr_exp.algorithms.sft import Example, Examples
from rlvr_exp.config.solutions import KINDS, SelfPlay
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.models.policy import Policy
from rlvr_exp.records.rollout_files import RolloutRow, write_rollouts
from rlvr_exp.rollouts.distributed import rank, shard
from rlvr_exp.self_play.found import Rows, read_rows, write_rows
from rlvr_exp.self_play.imitation import pool_of
from rlvr_exp.self_play.round import Progress, Round, RoundMaker, RoundSampler, rollout_rows
from rlvr_exp.solutions.store import SolutionStore
from rlvr_exp.stages.shared.rollout_feed import teaching
from rlvr_exp.tasks.base import Domain
from rlvr_exp.training.example_order import Mixture, Order, Pool
from rlvr_exp.training.learner import Learner

GOLD = "gold"
STORE = "self_play.solutions"
"""The option that names the store."""
NOTHING = (
    "there is nothing to imitate: the data have no golds, and no answer of the first round passed or made a task. Begin with "
    "a policy that writes programs (+stage=sft), with more of self_play.tasks and self_play.samples, or with data with golds"
)


@dataclass(frozen=True)
class Imitation:
    """How rows are imitated."""

    policy: Policy
    domain: Domain
    gold: Examples
    """The data's own."""
    order: Callable[..., Order] | None
    """Makes their order, of a key; None: there are none."""
    steps: int
    """Updates of a round; the last round has what is left of the run's."""
    golds_alone: int
    """Update of the run, counted from 0, from which on golds alone are imitated."""
    batch_size: int
    """Examples of an update on all processes."""
    longest: int
    """Tokens of the longest example."""
    restart: Callable[[], None]
    """Called before a round that trains from the weights that the run began with."""


class SelfPlayFeed:
    """
    Args:
        store: of the solutions.
        sampler: makes that of a round.
        progress: makes what is shown of a round, by its name.
    """

    def __init__(
        self,
        options: SelfPlay,
        maker: RoundMaker,
        imitation: Imitation,
        sampler: Callable[[], RoundSampler],
        seed: int,
        directory: Path,
        store: Path,
        progress: Callable[[str], Progress],
    ):
        self._options, self._maker, self._imitation, self._sampler = options, maker, imitation, sampler
        self._seed, self._directory, self._progress = seed, directory, progress
        self._store = store
        self._rounds: list[Rows] = []
        self._mixture: Mixture | None = None
        self._unwritten: Round | None = None
        """The round of this step, until its rollouts are written."""
        self._metrics: dict[str, float] = {}
        """Of a round that no row of metrics has yet."""
        self.rows: Sequence[RolloutRow] = ()
        if rank() == 0:
            self._learn_of_others()

    def collect(self, step: int) -> list[Example]:
        """This process's examples in a step, counted from 0."""
        number = min(step // self._imitation.steps, self._options.rounds - 1)
        self.rows = ()
        if number == len(self._rounds):
            self._begin(number, step)
        if self._mixture is None:
            self._mixture = self._mixed(number)
        of_round = step - number * self._imitation.steps
        golds = self._mixture.sources(GOLD, of_round + 1)
        self._metrics |= {f"mix/golds/{source}": float(count) for source, count in golds.items()}
        return [self._mixture.example(*place) for place in shard(self._mixture.places(of_round))]

    def write(self, learners: Mapping[str, Learner]) -> None:
        """Write what the round of this step sampled."""
        made, self._unwritten = self._unwritten, None
        if made is not None:
            self.rows = rollout_rows(made)
            write_rollouts(self._directory, made.step + 1, self.rows)

    def metrics(self) -> dict[str, float]:
        """Of the rounds since the last row."""
        row, self._metrics = self._metrics, {}
        return row

    def state_dict(self) -> dict[str, Any]:
        """Plain values; the rows of the rounds are in the run directory."""
        return {"rounds": len(self._rounds), "metrics": self._metrics}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises InputError where the keys are other ones, or the file of a round is not as it was."""
        if state.keys() != self.state_dict().keys():
            got, remedy = ", ".join(sorted(state)) or "no keys", "resume with the version that wrote the checkpoint"
            problem = InputProblem("state of SelfPlayFeed", "has other keys", got, "metrics, rounds", remedy=remedy)
            raise InputError(problem)
        tasks = {task.id: task for task in self._maker.tasks}
        self._rounds = [
            read_rows(self._directory, number, tasks, self._imitation.domain) for number in range(state["rounds"])
        ]
        for rows in self._rounds:
            self._maker.keep(rows)
        self._metrics = dict(state["metrics"])

    def _begin(self, number: int, step: int) -> None:
        began = time.perf_counter()
        shown = self._progress(f"round {number + 1} of {self._options.rounds}")
        made = self._unwritten = self._maker.make(number, step, self._sampler(), shown)
        if number and self._options.from_base:
            self._imitation.restart()
        if rank() == 0:
            write_rows(self._directory, number, made.rows)
            self._keep(made)
        self._rounds.append(made.rows)
        self._mixture = None
        self._metrics = {**made.metrics, **teaching(made.observations), "time/round": time.perf_counter() - began}
        self._metrics |= {f"curriculum/{name}": value for name, value in self._maker.curriculum.metrics().items()}
        self._metrics |= {f"mix/{source}": float(count) for source, count in self._maker.mix.items()}

    def _keep(self, made: Round) -> None:
        """Add to the store what was found; after a kill in between they are duplicates."""
        rows = [row.solution for kind in KINDS for row in made.rows[kind]]
        with SolutionStore(self._store, option=STORE) as store:
            for _ in store.add_all([*(one.solution for one in made.found), *rows]):
                pass

    def _learn_of_others(self) -> None:
        """No task is made that another run has left in the store. What this run left there is known from its own rounds."""
        if self._maker.hindsight is None:
            return
        with SolutionStore(self._store, option=STORE) as store:
            words = "SELECT DISTINCT task FROM solutions WHERE operator = 'relabelled' AND run != ?"
            self._maker.hindsight.keep(name for (name,) in store.rows(words, [self._maker.run]))

    def _mixed(self, number: int) -> Mixture:
        given = self._imitation
        rows = {kind: [row for one in self._rounds[: number + 1] for row in one[kind]] for kind in KINDS}
        made = {kind: pool_of(given.policy, given.domain, own, kind, given.longest) for kind, own in rows.items()}
        pools: dict[str, Pool] = {kind: pool for kind, pool in {GOLD: given.gold, **made}.items() if len(pool)}
        if not pools:
            raise GuardStop(NOTHING)
        shares = {kind: getattr(self._options, kind) for kind in KINDS}
        if GOLD not in pools:
            shares = {kind: share / sum(shares[kind] for kind in pools) for kind, share in shares.items()}
        alone = given.golds_alone - number * given.steps if GOLD in pools else None
        key = (self._seed, "self_play", number)
        orders = {GOLD: given.order(*key, GOLD)} if given.order else {}
        return Mixture(pools, shares, next(iter(pools)), given.batch_size, *key, alone=alone, orders=orders)
