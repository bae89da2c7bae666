"""Decides which cells are stale and what a run does about it: pure functions over observations."""
