"""Compares stored tables with their definitions evaluated from scratch."""
