"""Tiers of tests: `--tier=unit` runs the tests that need neither a process nor torch, `--tier=rest` runs the others.

The unit tier holds the tests of PLACES. Files of EXCEPT and tests marked `heavy` are left out. While the tier runs, it refuses
to start a process and to import torch, so a test that needs either fails there instead of slowing the tier down.
"""

import _posixsubprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parent
TIERS = ("all", "unit", "rest")
PLACES = """
    benchmarks/test_contest.py
    config core curriculum docs domains/code domains/problems episodes evaluation domains/dafny
    domains/edits/test_action_similarity.py domains/edits/test_edit_action.py domains/edits/test_edits_domain.py
    launch launchers/test_conf_page.py launchers/test_requirements.py
    main memory readme/test_links.py readme/test_problems_page.py records report rewards
    rollouts/test_group_filter.py rollouts/test_replies.py
    runs self_play solutions
    stages/test_validation_candidates.py stages/test_rescored.py stages/test_stage_compare.py
    tasks test_files.py test_unit_tier.py verifiers view
""".split()
"""Folders and files. A new file in one of the folders belongs to the tier."""
EXCEPT = """
    config/test_declared_once.py domains/dafny/test_dafny_image.py config/test_parallel_options.py
    docs/test_notebooks.py docs/test_page_commands.py docs/test_recipes.py
    launch/test_two_hosts.py rewards/test_reward_lint.py
    domains/code/test_agreement.py domains/code/test_evalplus.py domains/problems/test_adversarial.py
    domains/problems/test_adversarial_attacks.py domains/problems/test_problems_corpus_assets.py
    domains/problems/test_solution.py domains/problems/test_problems_engine.py
    domains/problems/test_problems_loading.py domains/problems/test_reasoning.py
    domains/problems/test_stage_infer_problems.py domains/problems/test_stage_problems.py
    domains/problems/test_stage_reasoning.py episodes/test_retry.py episodes/test_tools_in_answers.py domains/dafny/attacks
    domains/dafny/test_cascade.py domains/dafny/test_dafny_corpus.py domains/dafny/test_dafny_prepare.py
    domains/dafny/test_dafny_tool.py domains/dafny/test_dafny_usable.py
    domains/dafny/test_dafny_contest.py domains/dafny/test_dafny_feedback.py
    domains/dafny/test_dafny_differential.py domains/dafny/test_dafny_kept.py domains/dafny/test_dafny_usable_examples.py
    domains/dafny/test_dafny_verifier.py domains/dafny/test_stage_cascade.py
    domains/dafny/test_stage_dafny.py domains/dafny/test_verifier_prune.py
    evaluation/test_bits.py evaluation/test_vote.py evaluation/test_evaluate_episodes.py
    evaluation/test_excess_code.py
    launch/test_execute.py launch/test_preflight.py launch/test_resume.py
    verifiers/test_light_import.py
    main/test_real_runs.py
    memory/test_plan.py records/test_guards_disk.py report/test_diagnosis_kept.py report/test_report_parts.py
    memory/test_reading.py
    self_play/test_imitation.py self_play/test_refine.py self_play/test_relabel.py
    solutions/test_store_processes.py
    runs/test_calibration.py runs/test_chain.py runs/test_executors.py runs/test_model_studies.py
    runs/test_quick_studies.py runs/test_schedule.py runs/test_search.py
    runs/test_search_rounds.py runs/test_study_plans.py runs/test_transfer.py
    runs/test_zero_shot.py
    verifiers/test_execution.py verifiers/test_line_coverage.py verifiers/test_pytest_suite.py
    verifiers/test_pytest_suite_texts.py verifiers/test_python_io.py verifiers/test_python_io_cases.py
    verifiers/test_python_io_honest.py verifiers/test_python_tests.py verifiers/test_universal.py
""".split()
"""Files and folders of these folders in which most tests need a process, torch or many seconds."""
STARTS_A_PROCESS = {
    "subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system",
}  # fmt: skip
"""Audit events of Python."""
REMEDY = "Mark the test `heavy`, or add its file to EXCEPT in tests/unit_tier.py."
refused: list[str] = []
"""What the running test tried; code under test may swallow the failure."""


def absent() -> list[str]:
    """Entries of the tables without a file."""
    return [place for place in (*PLACES, *EXCEPT) if not (TESTS / place).exists()]


def holds(path: Path) -> bool:
    """Whether a file of tests is in the unit tier."""
    place = path.resolve().relative_to(TESTS)
    own = {str(one) for one in (place, *place.parents)}
    return not own.isdisjoint(PLACES) and own.isdisjoint(EXCEPT)


def chosen(tier: str, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests of a tier."""
    if tier == "all":
        return list(items)
    return [item for item in items if (holds(item.path) and not item.get_closest_marker("heavy")) == (tier == "unit")]


def refuse_heavy_work() -> None:
    """From now on, starting a process or importing torch fails in this process."""
    sys.addaudithook(_no_process)
    # Python does not audit the processes that multiprocessing spawns.
    _posixsubprocess.fork_exec = lambda *_: _refuse("to start a process: multiprocessing")
    sys.meta_path.insert(0, _NoTorch())


def _refuse(what: str) -> None:
    refused.append(what)
    pytest.fail(f"the unit tier refuses {what}. {REMEDY}")


def _no_process(event: str, arguments: tuple[object, ...]) -> None:
    if event in STARTS_A_PROCESS:
        _refuse(f"to start a process: {event}{arguments!r:.200}")


class _NoTorch(MetaPathFinder, Loader):
    """Finds torch, as code that looks for installed packages expects, but does not load it."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(name, self) if name == "torch" else None

    def exec_module(self, module: ModuleType) -> None:
        _refuse("to import torch")


@pytest.fixture(autouse=True)
def _nothing_was_refused() -> Iterator[None]:
    """Fail a test that swallowed the failure, or caused it in a thread."""
    refused.clear()
    yield
    assert not refused, f"the unit tier refused {refused}. {REMEDY}"
