"""
The page of a project: what the ledger knows, to be looked at in a browser.

:mod:`documents` makes the data, plain JSON by name; ``assets`` draws it. :mod:`server` hands both
out on this machine alone, and :mod:`export` writes them as files that open from disk. Nothing here
writes to a target, and nothing starts Spark.
"""
