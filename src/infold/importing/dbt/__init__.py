"""Reads a project of dbt."""
