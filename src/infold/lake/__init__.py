"""
Stored tables and sources' files as they are now, found and read without a JVM.

``iceberg`` has the tables behind ``ports.Lake``, one package for each storage; ``reading`` has the
files of sources, one module for each format. A command with nothing to do asks whether a table has
moved, what its metadata is, and which files are there: that uses the standard library alone.
"""
