"""Stored tables as an engine writes them: the port and its adapters."""
