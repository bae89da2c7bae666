"""Compares stored tables with a full rebuild."""
