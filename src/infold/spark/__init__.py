"""
The only package that imports pyspark.

Importing the package itself imports nothing, so that looking for Java and jars stays cheap.
"""
