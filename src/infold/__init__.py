"""
Keeps tables derived from event data equal to their definition, at a cost that follows the news.

Nothing is imported here: a command pays only for what it uses.
"""

__version__ = "0.1.0"
