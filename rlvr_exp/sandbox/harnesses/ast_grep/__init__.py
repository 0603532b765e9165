"""ast-grep's rewriting in a candidate's own process: `rewrites` is the harness, `inline` and `program` are its engines.

`job` packs a request on the trusted side; `syntax_tree` digests the result.
"""
