"""
Places in object stores, listed, read and written without a JVM.

``settings`` makes the settings of every library from one declaration, ``bucket`` is one bucket,
``errors`` names what a store refuses, ``opened_object`` is one object as a file, ``places`` has
what tables need of a folder, in a store or on a disk, and ``file_io`` gives that to pyiceberg.
"""
