"""Which split a row goes to, or why it is dropped after all: decided in the index, for groups of alike rows.

A group with a row that its set keeps in `test` is in `test`, one with a row kept in `dev` in `dev`; another is drawn by the least
content hash in it. Order of lines, names of files and number of processes decide nothing.
"""

import sqlite3

from rlvr_exp.config.prepare import EditSets
from rlvr_exp.core.seeds import uniform
from rlvr_exp.corpora.edit_sets.groups import Groups

SAME_EDIT, SAME_ID, ALIKE = "the same edit as another row", "the id of another row", "alike to another row"
RANKED = ("", "train", "dev", "test")
"""Splits that rows demand, from the weakest to the strongest."""
_PLACED = """
CREATE TABLE placed AS
WITH heads AS (SELECT root, min(key) AS head,
                     max(CASE demanded WHEN 'test' THEN 3 WHEN 'dev' THEN 2 WHEN 'train' THEN 1 ELSE 0 END) AS rank
              FROM rows JOIN grouped USING (n) GROUP BY root),
     ranked AS (SELECT rows.n AS n, grouped.root AS root,
                       row_number() OVER (PARTITION BY rows.key ORDER BY rows.id, rows.n) AS same
                FROM rows JOIN grouped USING (n)),
     single AS (SELECT ranked.n AS n, ranked.root AS root, ranked.same AS same,
                       row_number() OVER (PARTITION BY rows.id, ranked.same > 1 ORDER BY rows.key, rows.n)
                           AS named,
                       row_number() OVER (PARTITION BY ranked.root, ranked.same > 1 ORDER BY rows.key, rows.n) AS first
                FROM ranked JOIN rows USING (n))
SELECT single.n AS n, place(head, rank) AS split,
       CASE WHEN same > 1 THEN :same WHEN named > 1 THEN :named WHEN :single AND first > 1 THEN :alike ELSE '' END AS reason
FROM single JOIN heads USING (root) ORDER BY single.n
"""


def place(db: sqlite3.Connection, groups: Groups, options: EditSets, seed: int) -> None:
    """Write the table `placed`: n, split, and the reason why a row is dropped after all, or nothing."""

    def split_of(head: bytes, rank: int) -> str:
        return RANKED[rank] or drawn(head, options.test_fraction, options.dev_fraction, seed)

    db.create_function("place", 2, split_of, deterministic=True)
    db.execute("DROP TABLE IF EXISTS grouped")
    db.execute("DROP TABLE IF EXISTS placed")
    db.execute("CREATE TABLE grouped (n INTEGER PRIMARY KEY, root INTEGER)")
    db.executemany("INSERT INTO grouped VALUES (?, ?)", groups.roots())
    single = options.near_duplicates == "drop"
    db.execute(_PLACED, {"same": SAME_EDIT, "named": SAME_ID, "alike": ALIKE, "single": single})
    db.commit()


def drawn(head: bytes, test: float, dev: float, seed: int) -> str:
    """The split of a group by the least content hash in it."""
    number = uniform(seed, "edits split", head.hex())
    return "test" if number < test else "dev" if number < test + dev else "train"
