"""Micro-batches: derived, exact, and within the tokens allowed wherever that is possible."""

from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.config.batching import derive, of_groups


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
