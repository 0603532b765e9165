"""Edits by ast-grep rules, judged by the text they make or by tests. The action is read in rlvr_exp/tasks/edits."""

from rlvr_exp.verifiers.ast_grep.verifier import AstGrep

__all__ = ["AstGrep"]
