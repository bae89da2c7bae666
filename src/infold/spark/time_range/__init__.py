"""Recomputes whole tables and cells of models by time."""
