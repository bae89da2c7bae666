"""Executes plans: observes, executes steps in commit order, recovers, forgets."""
