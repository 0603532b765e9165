"""A store in words: what it holds, and the first of a query as a table. Also what options of a stage stand for."""

from rlvr_exp.config.solutions import Solutions
from rlvr_exp.solutions.keep import Keeping
from rlvr_exp.solutions.ranking import DEFAULT
from rlvr_exp.solutions.record import Solution
from rlvr_exp.solutions.store import Query, SolutionStore

COLUMNS = ("key", "task", "family", "operator", "verdict", "pairs right", "size", "CPU s", "step")
_OPERATORS = "SELECT operator, count(*), sum(outcome = 'passed') FROM solutions GROUP BY operator ORDER BY operator"


def query_of(options: Solutions, limit: int = 0) -> Query:
    """The filters and the ranking of the options; `limit` where they name none."""
    return Query(
        correct={"yes": True, "no": False}.get(options.correct),
        quality=options.quality or DEFAULT,
        limit=options.limit or limit,
    )


def keeping_of(options: Solutions) -> Keeping | None:
    """What a store is to keep; None where the options say nothing of it."""
    if not (options.per_task or options.quality):
        return None
    given = Keeping()
    return Keeping(options.per_task or given.per_task, tuple(options.quality) or given.quality)


def as_text(store: SolutionStore, query: Query) -> str:
    """Counts by operator, then the solutions of the query."""
    ((tasks, solved),) = store.rows(
        "SELECT count(DISTINCT task), count(DISTINCT CASE WHEN outcome = 'passed' THEN task END) FROM solutions"
    )
    keeping = store.keeping
    kept = f"at most {keeping.per_task} a task by {', '.join(keeping.quality) or 'the order of insertion'}"
    head = f"{store.path}: {store.count()} solutions of {tasks} tasks, {solved} tasks solved; {kept}"
    found = store.find(query)
    shown = f"{len(found)} of {store.count(query)} solutions, the best first"
    by_operator = _table(("operator", "solutions", "correct"), [tuple(map(str, row)) for row in store.rows(_OPERATORS)])
    return "\n\n".join([head, by_operator, shown, _table(COLUMNS, list(map(_cells, found)))])


def _cells(one: Solution) -> tuple[str, ...]:
    pairs = f"{one.verdict.passed}/{one.verdict.total}"
    figures = (pairs, str(one.syntax.size), f"{one.verdict.seconds:.3f}", str(one.step))
    return (one.key[:12], one.task, one.family, one.operator, one.verdict.reason, *figures)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
