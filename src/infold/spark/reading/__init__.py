"""
Rows of source files, exactly: one module for each format, and what they share.

Every reader gives the declared columns with their declared types, ``_path`` (of the file, as Spark
has it), ``_raw`` (the row as text, for setting it aside) and ``_problem`` (NULL when all is well).
A value that does not fit its declared type never becomes a silent NULL: it makes the row
unparsable, and the problem names the column.
"""
