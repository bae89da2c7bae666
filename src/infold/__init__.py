"""
Keeps tables derived from event data equal to a rebuild, at a cost proportional to the new data.

Nothing is imported here: a command pays only for what it uses.
"""

__version__ = "0.1.0"
