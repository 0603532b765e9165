"""Edits by ast-grep rules, judged by the text they produce or by tests. rlvr_exp/tasks/edits parses actions."""

from rlvr_exp.verifiers.ast_grep.verifier import AstGrep

__all__ = ["AstGrep"]
