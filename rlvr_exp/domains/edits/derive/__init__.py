"""Rows of edits that get an ast-grep action, for `+stage=prepare prepare=edit_actions`."""
