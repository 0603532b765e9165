"""A batch that is interrupted goes on from its journal: what has ended is not sampled again, and nothing else changes."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rollout_models import EOS, keys, prompts, tiny_model

from rlvr_exp.core.errors import GuardStop, Interrupted
from rlvr_exp.episodes.types import TokenCount
from rlvr_exp.records.resumable_jsonl import CompletionJournal
from rlvr_exp.rollouts.engines import journaled
from rlvr_exp.rollouts.engines.base import Drawn, RolloutRequest
from rlvr_exp.rollouts.engines.journaled import Journaled
from rlvr_exp.rollouts.engines.local import LocalEngine, own_stream
from rlvr_exp.rollouts.sampling_params import LogitFilters, SamplingParams
from rlvr_exp.verifiers.base import Verdict

SAMPLING = SamplingParams(LogitFilters(top_k=7), 30, (EOS,), batch_size=9)
POLICY = SimpleNamespace(model=tiny_model(), decode=lambda ids: " ".join(map(str, ids)))
TASKS, GROUP = 5, 4


def requests():
    """Of each task a greedy completion, which has no key, and others."""
    rows = zip(prompts(TASKS), keys(TASKS, GROUP - 1), strict=True)
    return [RolloutRequest(SimpleNamespace(id=f"t{i}"), tuple(p), (None, *k)) for i, (p, k) in enumerate(rows)]


class Counted:
    """What is sampled, and what is reported; `stop`: after so many completions a stop is requested."""

    def __init__(self, path, weights="w", stop=10**9):
        self.sampled, self.reports, self.stop = 0, [], stop
        self.engine = Journaled(LocalEngine(self), CompletionJournal(path, weights), TASKS * GROUP, self.report)

    def __call__(self, model, prompts, wanted, sampling, turns):
        self.sampled += sum(map(len, wanted))
        return own_stream(model, prompts, wanted, sampling, turns)

    def report(self, *given):
        self.reports.append(given)
        if given[0] >= self.stop:
            raise Interrupted("stopped")

    def draw(self, sampling=SAMPLING):
        found = {(one.request, one.sample): one for one in self.engine.draw(POLICY, None, requests(), sampling)}
        return {place: (found[place].sampled, found[place].text) for place in sorted(found)}


@pytest.fixture(autouse=True)
def every_report(monkeypatch):
    monkeypatch.setattr(journaled, "EVERY_S", 0.0)


@pytest.fixture(scope="module")
def plain():
    found = {(one.request, one.sample): one for one in LocalEngine().draw(POLICY, None, requests(), SAMPLING)}
    return {place: (replace(one.sampled, kept_token_ids=None), one.text) for place, one in sorted(found.items())}


def without_kept(found):
    return {place: (replace(sampled, kept_token_ids=None), text) for place, (sampled, text) in found.items()}


@pytest.mark.parametrize("torn", ["", '{"key": "half a li'])
def test_an_interrupted_batch_goes_on_with_the_same_bits(tmp_path, plain, torn):
    path = tmp_path / "journal.jsonl"
    first = Counted(path, stop=7)
    with pytest.raises(Interrupted):
        first.draw()
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) - 1 == first.engine.done >= 7 and first.sampled > 0
    path.write_text("".join(lines) + torn)
    second = Counted(path)
    assert second.engine.kept == len(lines) - 1
    assert without_kept(second.draw()) == plain
    assert second.sampled == TASKS * GROUP - (len(lines) - 1)
    assert all(json.loads(line) for line in path.read_text().splitlines()), "the torn line is gone"
    third = Counted(path)
    assert without_kept(third.draw()) == plain and third.sampled == 0


def test_other_weights_and_other_settings_take_nothing_from_a_journal(tmp_path, plain):
    path = tmp_path / "journal.jsonl"
    Counted(path).draw()
    colder = Counted(path)
    colder.draw(replace(SAMPLING, filters=LogitFilters(temperature=0.5)))
    assert colder.sampled == TASKS * GROUP
    trained = Counted(path, weights="v")
    assert trained.engine.kept == 0 and without_kept(trained.draw()) == plain and trained.sampled == TASKS * GROUP
    assert Counted(path).engine.kept == 0, "the journal was started over"


def test_progress_counts_completions_and_tokens(tmp_path):
    counted = Counted(tmp_path / "journal.jsonl")
    counted.engine.episodes_begin(TASKS * GROUP)
    tokens = sum(len(sampled) for sampled, _ in counted.draw().values())
    counted.engine.show()
    done = [done for done, *_ in counted.reports]
    assert done == sorted(done) and done[0] == 0 and done[-1] == TASKS * GROUP
    assert {total for _, total, *_ in counted.reports} == {TASKS * GROUP}
    assert counted.engine._tokens == tokens and counted.reports[-1][2] > 0
    first_end = next(place for place, one in enumerate(counted.reports) if one[0])
    assert any(rate for _, _, rate, _ in counted.reports[:first_end]), "tokens count before a completion ends"


def test_what_is_in_its_own_file_leaves_the_journal(tmp_path):
    path = tmp_path / "journal" / "before.jsonl"
    counted = Counted(path)
    counted.draw()
    counted.engine.episodes_end()
    assert not path.parent.exists()


def test_a_damaged_line_costs_its_own_completion_alone(tmp_path, plain):
    path = tmp_path / "journal.jsonl"
    Counted(path).draw()
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = b"\x00" * 20 + b"\n"
    path.write_bytes(b"".join(lines))
    again = Counted(path)
    assert without_kept(again.draw()) == plain and again.sampled == 1


class Served:
    """An engine of which one completion is refused for its length and one was never answered; both have ended before
    anything is fetched."""

    def __init__(self, lost):
        self.asked, self.lost = [], lost

    def draw(self, policy, domain, wanted, sampling):
        self.asked += [(one.task.id, len(one.keys)) for one in wanted]
        verdicts = [None, Verdict("failed", "prompt_too_long", log="long"), Verdict("no_verdict", log="lost")]
        found = [
            Drawn(
                at, sample, TokenCount(3, False, (-0.5,)), f"{one.task.id}", verdicts[sample % (3 if self.lost else 2)]
            )
            for at, one in enumerate(wanted)
            for sample in range(len(one.keys))
        ]
        for one in found:
            sampling.watch.ended(one)
        if self.lost:
            raise GuardStop("the server broke")
        yield from found


def test_answers_that_have_arrived_are_kept_and_those_that_never_came_are_asked_for_again(tmp_path):
    path, asked = tmp_path / "journal.jsonl", [replace(requests()[0], keys=(None, (1, "a"), (1, "b")))]
    first = Journaled(Served(lost=True), CompletionJournal(path, "w"), 3, lambda *_: None)
    with pytest.raises(GuardStop):
        list(first.draw(POLICY, None, asked, SAMPLING))
    engine = Served(lost=False)
    second = Journaled(engine, CompletionJournal(path, "w"), 3, lambda *_: None)
    found = sorted(second.draw(POLICY, None, asked, SAMPLING), key=lambda one: one.sample)
    assert engine.asked == [("t0", 1)] and [one.sample for one in found] == [0, 1, 2]
    assert found[0].sampled == TokenCount(3, False, (-0.5,)) and found[1].verdict.bucket == "prompt_too_long"


def test_progress_counts_shares_of_completions_that_have_not_ended(tmp_path):
    batch = Counted(tmp_path / "journal.jsonl")
    batch.draw()
    dones, totals, _, works = zip(*batch.reports, strict=True)
    assert list(works) == sorted(works), "work is not taken back when a completion ends before its limit"
    assert all(done <= work <= total for done, total, work in zip(dones, totals, works, strict=True))
    assert any(done < work for done, work in zip(dones, works, strict=True)) and works[-1] == dones[-1] == TASKS * GROUP
