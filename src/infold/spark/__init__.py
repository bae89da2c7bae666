"""
Executes steps with Spark: reads sources, computes rows and writes tables.

It is the only package that imports pyspark.
Importing the package itself imports nothing, so that looking for Java and jars stays cheap.
"""
