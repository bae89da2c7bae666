"""
Tells others of runs: hooks, metrics, lineage.

`tell` is the one place that says what happened; each listener beside it says it to somebody. A
listener that fails, or hangs, leaves the run's result as it is. Nothing here is imported by a run
that tells nobody.
"""
