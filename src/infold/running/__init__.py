"""Carries a plan out: observes, executes steps in commit order, recovers, forgets."""
