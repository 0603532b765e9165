"""Micro-batches: derived, exact, and within the tokens allowed wherever that is possible."""

from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.config.parallel import derive, micro_batches, of_groups, pieces


@given(st.integers(1, 600), st.integers(1, 9000), st.integers(1, 40_000), st.integers(1, 8))
def test_a_step_is_cut_exactly(sequences: int, longest: int, tokens: int, processes: int) -> None:
    batches = derive(sequences, longest, tokens, processes)
    assert batches.micro_batch * batches.accumulation == batches.sequences
    assert sequences <= batches.sequences * processes < sequences + processes
    assert batches.micro_batch == 1 or batches.micro_batch * longest <= tokens


@given(st.integers(1, 300), st.integers(1, 3000), st.integers(1, 40_000))
def test_no_larger_divisor_would_fit(sequences: int, longest: int, tokens: int) -> None:
    batches = derive(sequences, longest, tokens)
    larger = [size for size in range(batches.micro_batch + 1, sequences + 1) if sequences % size == 0]
    assert all(size * longest > tokens for size in larger)


def test_groups_hold_their_prompt_once() -> None:
    assert of_groups(32, 8, prompt=1024, completion=128, tokens=16384, processes=1) == derive(32, 2048, 16384)
    assert derive(32, 2048, 16384).micro_batch == 8


lengths = st.lists(
    st.tuples(st.integers(1, 60), st.dictionaries(st.integers(0, 7), st.integers(1, 40), max_size=8)), max_size=12
)


@given(lengths, st.integers(1, 300), st.integers(1, 4), st.booleans())
def test_every_sample_is_in_one_pass_and_all_processes_run_equally_many(groups, tokens, processes, shared) -> None:
    wanted = pieces([prompt for prompt, _ in groups], [answers for _, answers in groups], tokens, shared)
    parts = micro_batches(wanted, tokens, processes)
    assert parts and len(parts) % processes == 0
    found = sorted((piece.group, sample) for part in parts for piece in part for sample in piece.samples)
    assert found == sorted((group, sample) for group, (_, answers) in enumerate(groups) for sample in answers)


@given(lengths, st.integers(1, 300), st.integers(1, 4), st.booleans())
def test_a_pass_stays_within_its_tokens_wherever_that_is_possible(groups, tokens, processes, shared) -> None:
    wanted = pieces([prompt for prompt, _ in groups], [answers for _, answers in groups], tokens, shared)
    for piece in wanted:
        prompt, answers = groups[piece.group]
        assert piece.tokens == prompt + sum(answers[sample] for sample in piece.samples)
        assert piece.tokens <= tokens or len(piece.samples) == 1
        assert shared or len(piece.samples) == 1
    parts = micro_batches(wanted, tokens, processes)
    assert all(len(part) == 1 or sum(piece.tokens for piece in part) <= tokens for part in parts if part)


def test_passes_are_as_few_and_as_even_as_can_be() -> None:
    wanted = pieces([10] * 6, [{0: 10}] * 6, 1000)
    assert [len(part) for part in micro_batches(wanted, 100)] == [3, 3]
    assert [len(part) for part in micro_batches(wanted, 1000)] == [6]
    assert [len(part) for part in micro_batches(wanted, 1000, processes=4)] == [2, 2, 2, 0]
