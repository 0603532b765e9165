"""Every YAML under conf/ composes, and every key in it belongs to a schema."""

from pathlib import Path

import pytest
from thinning import thinned

from rlvr_exp.config.compose import compose
from rlvr_exp.config.schema import STAGES
from rlvr_exp.config.tree import conf_directory

CONF = conf_directory()
FILES = sorted(path.relative_to(CONF).with_suffix("").as_posix() for path in CONF.rglob("*.yaml"))
STAGE_OF = {
    "algorithm": lambda option: option if option in STAGES else "grpo",
    "benchmark": lambda option: "benchmark",
    "chain": lambda option: "chain",
    "engine": lambda option: "evaluate" if option == "server" else "grpo",
    "environment": lambda option: option if option in STAGES else "grpo",
    "executor": lambda option: "study",
    "prepare": lambda option: "prepare",
    "study": lambda option: "study",
}
"""Which stage takes a group's option, where not all do."""
NEEDED = {
    "chain": ["chain=edits"],
    **{
        f"chain/{name}": ["chain.path=x"]
        for name in (
            "commits",
            "dafny_bench",
            "smollm2_mbpp",
            "smollm2_steps",
            "srl_edits",
            "arc_soar",
            "sdpo_code",
            "distill_14b",
        )
    },
    "compare": ["compare.runs=[a,b]"],
    "algorithm/distillation": ["roles.teacher.model.path=x"],
    "distill": ["roles.teacher.model.path=x"],
    "data/code": ["data.path=x"],
    "data/edits": ["data.path=x"],
    "experiment/canitedit": ["data.path=x"],
    "experiment/canitedit_actions": ["data.path=x"],
    "experiment/edits_action": ["data.path=x"],
    "experiment/edits_text": ["data.path=x"],
    "environment/reasoning": ["data=problems"],
    "executor/local": ["study=ablation"],
    "executor/slurm": ["study=ablation"],
    "executor/ray": ["study=ablation"],
    "prepare": ["prepare=arc"],
    "study": ["study=ablation"],
    "study/search": ["study.space.optimizer.lr={uniform:[1e-4,1e-3]}"],
}
NEEDED["curriculum/manual"] = ["curriculum.steps=[10]"]
FROM_PATH = (
    "dafny_check",
    "dafny_rows",
    "dafny_usable",
    "edit_actions",
    "trajectories",
    "edits",
    "edits_filtered",
    "gguf",
    "gguf_export",
    "merge",
)
OPENENV = ["environment=openenv", "environment.url=http://127.0.0.1:9"]
NEEDED |= {f"{group}/openenv": OPENENV for group in ("data", "environment", "reward", "verifier")}
NEEDED |= {f"prepare/{maker}": ["prepare.path=x"] for maker in FROM_PATH}
NEEDED["prepare/hub"] = ["prepare.name=OWNER/NAME"]
NEEDED |= {f"benchmark/{name}": ["benchmark.path=x"] for name in ("ast_grep", "dafny_differential", "evalplus")}
NEEDED |= {f"{where}benchmark/gradient_variance": ["algorithm=reinforce"] for where in ("", "experiment/quick/")}


IMITATION = ("edits_action", "edits_text", "tiny_base", "tiny_dafny", "tiny_edits", "tiny_solver", "tiny_tester")
WORKED = ("laptop", "one_32gb", "two_32gb")
MADE_FOR = {
    "canitedit": ("evaluate",),
    "canitedit_actions": ("evaluate",),
    "demo": ("grpo",),
    **dict.fromkeys(IMITATION, ("sft",)),
    **dict.fromkeys(WORKED, ("grpo",)),
}
"""Experiments that are made for some stages alone."""


def words_for(file: str) -> list[list[str]]:
    """Command lines that load a file."""
    group, _, option = file.rpartition("/")
    if file == "config":
        return [["+stage=grpo"]]
    if group == "stage":
        return [[f"+stage={option}", *NEEDED.get(option, [])]]
    if group.startswith("stage/"):  # What a stage says about an embedded model.
        return [[f"+{group.replace('/', '=')}"]]
    if group == "chain/rehearsal":
        return [["+stage=chain", f"chain=rehearsal/{option}", "chain.path=x"]]
    if group == "experiment":
        stages = MADE_FOR.get(option, STAGES)
        return [
            [f"+stage={stage}", f"+experiment={option}", *NEEDED.get(stage, []), *NEEDED.get(file, [])]
            for stage in stages
        ]
    if group.startswith("experiment/") and group.endswith("/data"):  # What an experiment says about one choice of data.
        return [["+stage=grpo", f"data={option}", f"+experiment={group.split('/')[1]}"]]
    if group.startswith("experiment/quick/model"):  # What the smallest size is for a model, and for a model at a stage.
        model, stage = (option, "grpo") if group.endswith("/model") else (group.rpartition("/")[2], option)
        return [[f"+stage={stage}", f"model={model}", "+experiment=quick"]]
    if group.count("/") == 2:  # What an experiment says about one choice of a stage's own group.
        _, experiment, stage = group.split("/")
        return [[f"+stage={stage}", f"{stage}={option}", f"+experiment={experiment}", *NEEDED.get(file, [])]]
    if group.startswith("experiment/"):  # What an experiment says about one stage.
        return [[f"+stage={option}", f"+experiment={group.partition('/')[2]}", *NEEDED.get(option, [])]]
    data = "problems" if option in ("solver", "tester") or group == "reasoning" else "dafny"
    needed = [f"data={data}"] if group in ("role", "reasoning") else NEEDED.get(file, [])
    return [[f"+stage={STAGE_OF.get(group, lambda _: 'grpo')(option)}", f"{group}={option}", *needed]]


@pytest.mark.parametrize("file", thinned(FILES, 3))
def test_composes(file: str) -> None:
    for words in words_for(file):
        checked = compose(words)
        if file != "config":
            empty = not [
                line for line in (CONF / f"{file}.yaml").read_text().splitlines() if line and line[0] not in "#d "
            ]
            loaded = {origin for origin in checked.tree.origins.values() if origin.startswith("conf/")}
            assert empty or f"conf/{file}.yaml" in loaded, f"{words} does not load it"


def test_files_are_found() -> None:
    assert {"config", "stage/grpo", "model/tiny", "experiment/quick/grpo"} < set(FILES)


def test_every_stage_has_its_file_and_every_file_its_stage() -> None:
    assert {path.stem for path in (CONF / "stage").glob("*.yaml")} == set(STAGES)


def test_installed_conf_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlvr_exp.config import tree as paths

    (tmp_path / "package" / "conf").mkdir(parents=True)
    (tmp_path / "package" / "conf" / "config.yaml").touch()
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "package")
    assert paths.conf_directory() == tmp_path / "package" / "conf"
    (tmp_path / "package" / "conf" / "config.yaml").unlink()
    with pytest.raises(FileNotFoundError, match="reinstall rlvr_exp"):
        paths.conf_directory()


def test_grpo_is_the_published_method_and_the_demonstration_is_an_experiment() -> None:
    published = compose(["+stage=grpo"]).config.algorithm
    assert published == compose(["+stage=grpo", "algorithm=grpo"]).config.algorithm
    assert (published.pass_k, published.advantage_scale) == (1, "group") and published.kl_coef > 0
    assert compose(["+stage=grpo", "+experiment=demo"]).config.algorithm.pass_k == 2
    assert compose(["+stage=grpo", "+experiment=[demo,quick]"]).config.algorithm.max_steps == 3
