"""Self-play in rounds, with an evaluation before and after. The policy answers training tasks. Its answers are
verified, stored, refined, and relabelled with the tasks that they solve. The policy then imitates a selection of them
together with the reference answers of the data."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from datasets import Dataset

from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.sft import Example, Examples, ImitationTrainer, example
from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.config.solutions import KINDS, SelfPlay
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem, Interrupted
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.evaluation.text_similarity import saved_role_rates
from rlvr_exp.models.policy import Policy
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.rollout_files import RolloutRow, write_rollouts
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.rollouts.distributed import rank, shard
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.self_play.found import Rows, read_rows, write_rows
from rlvr_exp.self_play.imitation import pool_of
from rlvr_exp.self_play.round import Progress, Round, RoundMaker, RoundSampler, rollout_rows
from rlvr_exp.solutions.store import SolutionStore
from rlvr_exp.stages.reinforcement import teaching
from rlvr_exp.stages.sft import batch_plan, golds_of, held_out_loss, trainer_arguments
from rlvr_exp.stages.shared.components import RunComponents, build_components, never_trained, training_tasks
from rlvr_exp.stages.shared.held_out import evaluate_and_save, evaluate_before, held_out_success, selection
from rlvr_exp.stages.shared.start import check_self_play
from rlvr_exp.stages.shared.training import TrainingInputs, curriculum_of, example_order, fit, mixed_tasks, open_tracker
from rlvr_exp.stages.shared.trial import on_trial
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.training.example_order import Mixture, Order, Pool
from rlvr_exp.training.learner import Learner, SFTLearner
from rlvr_exp.training.step_log import StepClock
from rlvr_exp.verifiers.base import KeepsOutputs, executor_of

GOLD = "gold"

STORE = "self_play.solutions"
"""The option with the path of the store."""

NOTHING = (
    "there is nothing to imitate: the data have no golds, and no answer of the first round passed or made a task. Begin with "
    "a policy that writes programs (+stage=sft), with more of self_play.tasks and self_play.samples, or with data with golds"
)


def run(config: Config, context: RunContext) -> StageResult:
    with open_tracker(config, context) as tracker, build_components(config, context) as components:
        check_domain(components, config)
        if rank() == 0:  # A store that cannot be used is told before anything is measured.
            SolutionStore(store_path(config, context), option=STORE).close()
        tasks = mixed_tasks(config, training_tasks(components, config, context))
        golds = golds_of(components, config, context, tasks, required=not _options(config).without_golds)

        def trained(clock: StepClock | None = None) -> tuple[int, dict[str, float]]:
            return train(components, config, context, tracker, tasks, golds, clock)

        if config.run.trial:
            return on_trial(components, config, context, trained)
        before = context.before = evaluate_before(components, config, context)
        tracker.rates("before", 0, before)
        steps, final = trained()
        after = evaluate_and_save(components, config, context, "after")
        tracker.rates("after", steps, after)
    return StageResult(before=before, after=after, metrics=final | saved_role_rates(context.directory), steps=steps)


@dataclass(frozen=True)
class Imitation:
    """Options and parts of the imitation."""

    policy: Policy
    domain: Domain
    gold: Examples
    """Reference answers of the data."""
    order: Callable[..., Order] | None
    """Makes the order of the reference answers from a key; None if the data has none."""
    steps: int
    """Updates of a round. The last round takes the remaining updates of the run."""
    golds_alone: int
    """From this update of the run on, counted from 0, the policy imitates only reference answers."""
    batch_size: int
    """Examples of an update over all processes."""
    longest: int
    """Maximum number of tokens of an example."""
    restart: Callable[[], None]
    """Called before each round that trains from the initial weights of the run."""


class SelfPlayFeed:
    """Args:
    store: path of the store of solutions.
    sampler: makes the sampler of a round.
    progress: makes the progress callback of a round from its name.
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
        """Metrics of rounds that are in no row yet."""
        self.rows: Sequence[RolloutRow] = ()
        if rank() == 0:
            self._learn_of_others()

    def collect(self, step: int) -> list[Example]:
        """Return the examples of this process in a step, counted from 0."""
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
        """Write the rollouts of the round that began in this step."""
        made, self._unwritten = self._unwritten, None
        if made is not None:
            self.rows = rollout_rows(made)
            write_rollouts(self._directory, made.step + 1, self.rows)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the rounds since the last row."""
        row, self._metrics = self._metrics, {}
        return row

    def state_dict(self) -> dict[str, Any]:
        """Return plain values. The run directory has the rows of the rounds."""
        return {"rounds": len(self._rounds), "metrics": self._metrics}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises InputError if the keys differ, or if the file of a round has changed."""
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
        """Add the solutions of a round to the store. After a kill in between, the same solutions are duplicates."""
        rows = [row.solution for kind in KINDS for row in made.rows[kind]]
        with SolutionStore(self._store, option=STORE) as store:
            for _ in store.add_all([*(one.solution for one in made.found), *rows]):
                pass

    def _learn_of_others(self) -> None:
        """Exclude the tasks that other runs have left in the store. The rounds of this run already account for its own
        tasks."""
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


def _options(config: Config) -> SelfPlay:
    options = config.self_play
    assert options is not None  # The stage has its node.
    return options


def check_domain(components: RunComponents, config: Config) -> None:
    """Raises InputError if the data or the verifier does not support the options."""
    executor_of(components.verifier, "verifier")
    check_self_play(config, components.domain)


def store_path(config: Config, context: RunContext) -> Path:
    """Return the path of the store of solutions. A trial keeps nothing, so its store is in its own directory."""
    shared = "" if config.run.trial else _options(config).solutions
    return Path(shared or context.directory / "solutions.sqlite")


def train(
    components: RunComponents,
    config: Config,
    context: RunContext,
    tracker: Tracker,
    tasks: list[Task],
    golds: tuple[Examples, Examples],
    clock: StepClock | None = None,
) -> tuple[int, dict[str, float]]:
    """Train for the configured steps, or until the clock of a trial stops the training. Return the number of finished
    steps and the last row of metrics."""
    options, policy = _options(config), components.policy
    # Before a checkpoint is loaded into the model.
    base = {name: value.clone() for name, value in policy.model.state_dict().items()} if options.from_base else {}
    select = selection(components, config, context)
    with TemporaryDirectory() as scratch:
        trainer = imitation_trainer(policy, config, golds, Path(scratch))
        learner = SFTLearner(POLICY, trainer, config.algorithm.eval_every_steps, golds[1].characters)
        maker = round_maker(components, config, context, tasks)
        feed = self_play_feed(components, config, context, maker, golds[0], lambda: learner.restart(base))
        remembers: dict[str, Any] = {"curriculum": maker.curriculum} if maker.curriculum.state_dict() else {}
        measured = [held_out_loss(learner, context)] if golds[1] else []
        training = TrainingInputs(
            policies=policy,
            learners={POLICY: learner},
            learning=lambda step: (POLICY,),
            feed=feed,
            measurements=[held_out_success(components, config, context, select), *measured],
            select=select,
            shared=feed.metrics,
            parts={"rounds": maker, "feed": feed, **remembers},
        )
        return fit(training, config, context, tracker, clock)


def round_steps(config: Config) -> int:
    """Return the updates of a round. The last round takes the remaining ones."""
    return max(1, config.algorithm.max_steps // _options(config).rounds)


def imitation_trainer(
    policy: Policy, config: Config, golds: tuple[Examples, Examples], scratch: Path
) -> ImitationTrainer:
    """Return the trainer. If every round trains from the initial weights, its schedule covers one round."""
    horizon = round_steps(config) if _options(config).from_base else config.algorithm.max_steps
    scheduled = replace(config, algorithm=replace(config.algorithm, max_steps=horizon))
    train, held_out = golds
    return ImitationTrainer(
        policy,
        trainer_arguments(policy, scheduled, build(scheduled.algorithm), batch_plan(config), scratch),
        build(config.optimizer).make(policy.model),
        train.dataset if train else Dataset.from_list([example(policy, "", "")]),  # For its columns alone.
        held_out.dataset if held_out else None,
        NonFiniteGuard(config.run.guards.max_skipped),
        config.algorithm.max_sequence_tokens,
    )


def self_play_feed(
    components: RunComponents,
    config: Config,
    context: RunContext,
    maker: RoundMaker,
    gold: Examples,
    restart: Callable[[], None],
) -> SelfPlayFeed:
    imitation = Imitation(
        components.policy,
        components.domain,
        gold,
        order=example_order(config, gold) if len(gold) else None,
        steps=round_steps(config),
        golds_alone=config.algorithm.max_steps - round(_options(config).golds_alone * config.algorithm.max_steps),
        batch_size=batch_plan(config).sequences * config.parallel.world,
        longest=config.algorithm.max_sequence_tokens,
        restart=restart,
    )
    return SelfPlayFeed(
        _options(config),
        maker,
        imitation,
        sampler=lambda: round_sampler(components, config),
        seed=config.seed,
        directory=context.directory,
        store=store_path(config, context),
        progress=lambda name: shown(context, name),
    )


def round_maker(components: RunComponents, config: Config, context: RunContext, tasks: list[Task]) -> RoundMaker:
    return RoundMaker(
        _options(config),
        components.domain,
        tasks,
        never_trained(components, config),
        curriculum_of(config, tasks),
        executor_of(components.verifier, "verifier"),
        config.seed,
        context.directory.name,
    )


def round_sampler(components: RunComponents, config: Config) -> RoundSampler:
    """Return the sampler of a round. Its verdicts have outputs."""
    policy, model = components.policy, config.model
    longest, batch_size = model.max_completion_tokens, config.evaluation.batch_size
    return RoundSampler(
        policy,
        components.domain,
        KeepsOutputs(components.verifier, "verifier"),
        SamplingParams.of(_options(config), policy, longest, batch_size, components.domain),
        components.engine,
        min(model.max_prompt_tokens, policy.max_tokens - longest),
    )


def shown(context: RunContext, name: str) -> Progress:
    """Return the progress callback of a round."""

    def progress(done: int, total: int) -> None:
        with suppress(Interrupted):  # The step ends first, with a checkpoint.
            context.progress(kind="phase", name=name, done=done, total=total)

    return progress
