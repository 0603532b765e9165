"""Proposals proved by the verifier, in batches: ast-grep's own result, in the sandbox, decides which actions stay."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self

from rlvr_exp.config.verifier import Cache, Sandbox
from rlvr_exp.core.errors import RlvrError
from rlvr_exp.corpora.edit_actions.reading import Proposal
from rlvr_exp.corpora.edit_sets.draft import INCOMPLETE, Dropped
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.edits.action import Action, parse_action
from rlvr_exp.tasks.formats.ast_grep import AstGrepProblem
from rlvr_exp.verifiers.ast_grep import AstGrep
from rlvr_exp.verifiers.base import Request, Verdict

OTHER_TEXT = "ast-grep makes another text"
REFUSED = "ast-grep refuses the action"


class Proof:
    """Both comparisons of the verifier.

    Raises:
        InputError: ast_grep_py or the ast-grep program is missing.
    """

    def __init__(self, sandbox: Sandbox, cache: Cache | None):
        self._open = ExitStack()
        self._by_text = self._open.enter_context(AstGrep(sandbox, cache))
        self._by_tree = self._open.enter_context(AstGrep(sandbox, cache, compare="syntax"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def versions(self) -> Mapping[str, str]:
        """Those of the package and of the program."""
        return self._by_text.tool()

    def edited_text(self, before: str, action: Action) -> str:
        """What ast-grep makes of a text, in the sandbox. Raises ActionFault."""
        return self._by_text.edited_text(before, action)

    def prove(self, proposals: Sequence[Proposal]) -> list[dict[str, Any] | Dropped]:
        """The row of each proposal, or why it is none. Raises RlvrError where one has no verdict."""
        verifiers = [self._by_tree if proposal.by_tree else self._by_text for proposal in proposals]
        verdicts = [one.submit(_request(proposal)) for one, proposal in zip(verifiers, proposals, strict=True)]
        return [self._row(proposal, verdict.result()) for proposal, verdict in zip(proposals, verdicts, strict=True)]

    def _row(self, proposal: Proposal, verdict: Verdict) -> dict[str, Any] | Dropped:
        if verdict.outcome == "no_verdict":
            raise RlvrError(f"{proposal.edit.id}: no verdict: {verdict.log}; run the command again")
        if verdict.outcome != "passed":
            reason = OTHER_TEXT if verdict.bucket == "wrong_answer" else REFUSED
            return Dropped(reason, f"{verdict.bucket or verdict.outcome}: {verdict.log}")
        row = dict(proposal.values)
        if proposal.by_tree:
            action = parse_action(row["action"], proposal.edit.language)
            row["after"] = self.edited_text(proposal.edit.before, action)
        try:
            json.dumps(row, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as fault:
            return Dropped(INCOMPLETE, f"no JSON: {fault}")
        return row


def _request(proposal: Proposal) -> Request:
    edit = proposal.edit
    problem = AstGrepProblem(edit.language, edit.before, edit.after or "")
    return Request(problem, Candidate(proposal.values["action"]))
