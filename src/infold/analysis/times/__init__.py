"""Expressions of time: how long, how far apart, floored to what; of one row, without tables."""
