"""Runs the unit tests of a project: each as a project of its own, over the rows it is given."""
