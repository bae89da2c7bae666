"""
Files of sources, read without a JVM: a module for each format, and what they share.

``formats`` has the registry; ``event_times`` estimates with it which cells new files touch.
Nothing here imports pyarrow before a file is opened: listing files is all that most commands need.
"""
