"""Spark on a server that somebody else runs: Spark Connect. No JVM is in this process."""
