"""The operating system around the program: signals, locks between processes, failing disks."""
