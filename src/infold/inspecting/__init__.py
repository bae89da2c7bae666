"""Answers questions about what stands: models, sessions and their history, manifests, rows."""
