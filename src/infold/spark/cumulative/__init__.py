"""Folds ``cumulative_aggregate`` models: one row for each key of GROUP BY."""
