"""
Runs a project from a scheduler: operators for Airflow, assets for Dagster, and what both share.

Whatever runs, runs as the command ``infold`` in a process of its own, and its ``--json`` is the
result. So this folder imports the standard library, the list of messages and the scheduler, and
nothing else: the scheduler's environment needs none of infold's dependencies.
"""
