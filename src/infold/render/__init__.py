"""
Plans, summaries, states and verification reports → text and plain values.

Pure: values in, text out. The command line prints what these return, with nothing added, so a
test compares whole screens; ``json_shapes`` gives the same facts to programs, for ``--json``.
"""
