"""Audits judged: of what a step is about to write, before its commit, and of what is stored."""
