"""Dafny's front end alone: what parses and resolves, without a proof."""

import pytest

from rlvr_exp.domains.dafny.tool import Resolver, Tool

UNPROVED = """method Up(n: nat) returns (m: nat)
  ensures m == n
{
  m := 0;
  while m < n
  { m := m + 1; }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("warm", [True, False])
def test_the_front_end_alone_tells_what_resolves(dafny: Tool, warm: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not warm:
        monkeypatch.setattr("rlvr_exp.domains.dafny.tool._library", lambda program: "")
    with Resolver() as resolver:
        assert resolver.fault(UNPROVED) == ""
        assert "unresolved identifier: k" in resolver.fault(UNPROVED.replace("m + 1", "k + 1"))
