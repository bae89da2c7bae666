"""Builds and folds ``events`` models: rows of files in, one row for each event out."""
