"""Starts, reaches and ends the JVM: Java, jars, settings, the class archive."""
