"""Two processes learn the same as a single process: under ddp, ZeRO-2 and ZeRO-3, also where a rank has no samples.

The ranks are real ones, started as a run starts them; rank_program.py says what each does.
"""

import json
import os
from pathlib import Path

import pytest
from rank_program import FED, STEPS, TURNS, trace
from roles_in_turn import Pair, trained

from rlvr_exp.config.parallel import Parallel
from rlvr_exp.launch.children import child_environment, environments, log_name, run_children

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
STRATEGIES = ("ddp", "zero2", "zero3")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """The findings of each of two ranks."""
    folder = tmp_path_factory.mktemp("ranks")
    shared = child_environment(threads=1)
    shared["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent), shared["PYTHONPATH"]])
    arguments = [str(folder / "found"), ",".join(STRATEGIES)]
    envs = environments(Parallel(strategy="ddp", processes=2), shared)
    ended = run_children("rank_program", arguments, folder, envs, lambda event: None)
    assert ended.returncode == 0, (folder / log_name(ended.rank)).read_text()
    return [json.loads((folder / f"found.{rank}").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def alone() -> dict[str, dict[str, list[float]]]:
    return {fed: trace(Parallel(), fed) for fed in FED}


@pytest.mark.parametrize("fed", FED)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_losses_norms_and_weights_are_those_of_one_process(found, alone, strategy: str, fed: str) -> None:
    for rank in range(2):
        for figure, wanted in alone[fed].items():
            got = found[rank][strategy][fed][figure]
            assert len(got) == len(wanted) and (figure == "weights" or len(got) == STEPS)
            assert got == pytest.approx(wanted, rel=1e-5, abs=1e-5 * max(map(abs, wanted)) + 1e-9), figure


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_ranks_skip_an_update_that_is_not_finite_on_one(found, strategy: str, rank: int) -> None:
    weights, rows = (found[rank]["sick"][strategy][name] for name in ("weights", "rows"))
    assert [row["guard/loss"] for row in rows] == [row["guard/skipped"] for row in rows] == [0, 1, 0]
    assert weights[1] == weights[0] and weights[2] != weights[1]


def test_the_trace_tells_updates_apart(alone) -> None:
    """The premise of the comparison above: other batches give other norms and weights, an empty batch gives none."""
    assert alone["uneven"]["grad_norm"] != pytest.approx(alone["cut"]["grad_norm"], rel=1e-3)
    assert alone["uneven"]["weights"] != pytest.approx(alone["cut"]["weights"], rel=1e-3)
    assert set(alone["dead"]["grad_norm"]) == {0.0}


def test_each_rank_serves_its_shard_and_all_gather_all(found) -> None:
    told = found[0]["shares"]
    assert told["five"] == ["a by 0", "b by 1", "c by 0", "d by 1", "e by 0"]
    assert told["slowest"] == {"generate": 2.0} and told["one"] == ["a by 0"]
    assert told["any"] == [True, False] and told["agreed"] == 0
    assert told["added"] == {"asked": 3.0, "hit_rate": 0.25}
    assert found[1]["shares"] == told


@pytest.mark.parametrize("processes", [1, 2])
def test_roles_in_turn_learn_as_if_alone_and_leave_the_idle_role_unchanged(found, processes: int) -> None:
    """With two processes under ZeRO-2."""
    if processes == 2:
        in_turn, apart = (found[0]["roles"][name] for name in TURNS)
    else:
        in_turn, apart = (vars(trained(Parallel(), turns)) for turns in TURNS.values())
    assert in_turn["idle_kept"] and in_turn["learned"] and apart["idle_kept"]
    assert in_turn["steps"] == [2, 1, 4, 4]
    assert in_turn["weights"] == apart["weights"], "optimizer and schedule went on where they were"
    assert [len(rows) for rows in in_turn["rows"].values()] == [2, 2]
    assert in_turn["weights"]["default"] != in_turn["weights"]["critic"]


def test_roles_resumed_between_turns_learn_what_they_would_have_learned(tmp_path: Path) -> None:
    """Weights and rows, bit for bit, also where a role has not begun."""
    turns = TURNS["in turn"]
    whole = vars(trained(Parallel(), turns))
    for cut in range(1, len(turns)):
        folder = tmp_path / str(cut)
        first = Pair(Parallel(), str(tmp_path))
        first.train(turns[:cut])
        second = Pair(Parallel(), str(tmp_path), first.save(folder)).train(turns[cut:])
        assert second.weights == whole["weights"] and second.steps == whole["steps"][cut:]
        for name, rows in second.rows.items():
            assert rows == (whole["rows"][name][-len(rows) :] if rows else [])
