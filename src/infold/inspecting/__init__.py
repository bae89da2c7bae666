"""Answers questions about existing data: models, sessions and their history, manifests, rows."""
