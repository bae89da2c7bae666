"""
Tables of databases as sources: what a run reads of them, and the files that it leaves.

A database cannot show what it had yesterday, so nothing is computed from it directly. A run copies
the rows into Parquet files beside the warehouse, and these are the source, as files of a folder
are. ``extraction`` decides what is read again, ``extracted_files`` which files there are,
``columns`` which types fit; ``postgresql`` and ``sqlite`` read.
"""
