"""Reads a project of SQLMesh, by its files alone."""
