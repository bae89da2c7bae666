"""
Stored tables and sources' files as they are now, found and read without a JVM.

The adapter behind ``ports.Lake``. What a command with nothing to do needs (has a table moved, what
does its metadata say, which files are there) uses the standard library alone.
"""
