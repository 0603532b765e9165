"""The wording of Dafny prompts, for both roles and in both styles; never cuts a program to make a prompt fit.

`bare` is for small models trained here; the first token is the role: `W` for a body, `A` for a body's annotations. Then
the text around the method, its header and specification, for `A` also its code, and `P`. An answer is the body alone,
from its opening to its closing brace, and then the end token. `instruct` says the same in words. Solved examples
(shots) precede the task, each as its own prompt with its answer.
"""

from collections.abc import Sequence
from pathlib import Path

from rlvr_exp.config.data import DafnyPrompt as Wording
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.dafny.role_examples import RoleExample
from rlvr_exp.tasks.dafny.tokens import plain

MARKS = {"writer": "W", "annotator": "A"}
ANSWER = "P"
"""The line after which a bare answer starts."""
HOLE = "{ /* the body that you write */ }"

HEADS = {
    "writer": "Write the body of {title} in the Dafny program below, so that Dafny proves its specification.",
    "annotator": (
        "Annotate the body of {title} in the Dafny program below, so that Dafny proves its specification: add loop"
        " invariants,\nassertions, decreases clauses, calls of lemmas, calc statements or ghost variables where the"
        " proof needs them.\nLeave the code that runs exactly as it is."
    ),
}
ASKS = {
    "strict": (
        "Answer with the {what} alone, from its opening to its closing brace, in one code block and without another"
        " word:\n```dafny\n{{\n  ...\n}}\n```\n"
    ),
    "permissive": (
        "You may reason first. End your answer with one code block that holds the {what}; a whole method or program is"
        " taken\ntoo, of which the body of {title} counts. Nothing may be assumed:\n```dafny\n{{\n  ...\n}}\n```\n"
    ),
}
FORMS = tuple(ASKS)
WHAT = {"writer": "body", "annotator": "annotated body"}


NEWLINE = "\n"


def with_context(options: Wording) -> Wording:
    """The options with the text of `context_file` as their context. Raises InputError where it cannot be read."""
    if not options.context_file:
        return options
    try:
        text = Path(options.context_file).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        problem = InputProblem("data.prompt.context_file", "cannot be read", options.context_file, remedy=str(fault))
        raise InputError(problem) from fault
    return Wording(options.style, options.answer, options.shots, text)


def write(part: RoleExample, options: Wording, shots: Sequence[RoleExample] = ()) -> str:
    """The full prompt: the context, each shot with its answer, then the task."""
    if options.style == "bare":
        solved = [f"{_bare(shot, options.context)}{answer_of(shot, options)}\n\n" for shot in shots]
        return "".join(solved) + _bare(part, options.context)
    context = f"{options.context.strip(NEWLINE)}\n\n" if options.context.strip() else ""
    solved = [
        f"Here is a solved example.\n\n{_worded(shot, options)}\n{answer_of(shot, options)}\n\n" for shot in shots
    ]
    return context + "".join(solved) + _worded(part, options)


def answer_of(part: RoleExample, options: Wording) -> str:
    """The gold completion: in the bare style the body alone, else in a code block."""
    return part.gold if options.style == "bare" else f"```dafny\n{part.gold}\n```"


def retry(part: RoleExample, options: Wording, shots: Sequence[RoleExample], previous: str, feedback: str) -> str:
    """The bare prompt after a completion that did not pass: that completion precedes the task like a shot, with
    Dafny's log of it as comments."""
    comments = "".join(f"// {line}\n" for line in feedback.splitlines() if line.strip())
    return f"{write(part, options, shots)}{previous.strip(NEWLINE)}\n{comments}\n{_bare(part, options.context)}"


def _bare(part: RoleExample, context: str) -> str:
    one = part.example
    lines = [MARKS[part.role], context, one.before, one.after, one.header + one.spec, part.given, ANSWER]
    return "".join(f"{plain(text).strip(NEWLINE).rstrip()}\n" for text in lines if text.strip())


def _worded(part: RoleExample, options: Wording) -> str:
    """One task in words: the request, the program, the form of the answer."""
    words = {"title": f"`{part.title}`", "what": WHAT[part.role]}
    program = plain(part.example.program(part.given or HOLE)).strip(NEWLINE)
    lead, form = HEADS[part.role].format(**words), ASKS[options.answer].format(**words)
    return f"{lead}\n\n```dafny\n{program}\n```\n\n{form}"
