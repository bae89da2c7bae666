"""Python functions of a project: registered in sessions, and called in Spark's Python workers."""
