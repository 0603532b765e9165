"""A text's syntax tree as one digest: equal digests, equal programs but for the blanks that their grammar ignores.

The digest covers every node's kind, the text of every leaf (comments, operators and punctuation too), and whatever text
a node has between its children that is not blank. Strings, templates and what the parser could not read count as they
are written, since blanks inside them are content. Standard library and ast_grep_py only.
"""

import hashlib
import re

from ast_grep_py import SgNode, SgRoot

_AS_WRITTEN = re.compile(r"string|str_|char|regex|scalar|template|heredoc|text|inline|comment|raw|ERROR")


def digest(text: str, language: str) -> str:
    """32 hexadecimal digits."""
    hashed = hashlib.blake2b(digest_size=16)
    ahead: list[SgNode | str] = [SgRoot(text, language).root()]
    while ahead:
        item = ahead.pop()
        if isinstance(item, str):
            _add(hashed, item)
            continue
        children = item.children()
        if not children or _AS_WRITTEN.search(item.kind()):
            _add(hashed, f"leaf {item.kind()}", item.text())
            continue
        _add(hashed, f"node {item.kind()}")
        ahead.append("end")
        ahead += reversed(_inside(item, children, text))
    return hashed.hexdigest()


def _inside(node: SgNode, children: list[SgNode], text: str) -> list[SgNode | str]:
    """Children in order, and the text between them where it is not blank."""
    parts: list[SgNode | str] = []
    at = node.range().start.index
    for child in children:
        reach = child.range()
        parts += _gap(text[at : reach.start.index])
        parts.append(child)
        at = max(at, reach.end.index)
    return parts + _gap(text[at : node.range().end.index])


def _gap(text: str) -> list[SgNode | str]:
    return ["between", text] if text.strip() else []


def _add(hashed: "hashlib._Hash", *parts: str) -> None:
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
