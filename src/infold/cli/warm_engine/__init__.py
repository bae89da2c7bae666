"""
A warm engine: a process that keeps Spark running between commands, and carries them out.

A command that has started Spark leaves it, when it ends, to a *keeper* (``leaving``, ``keeper``):
a process that has imported the program, listens on a Unix socket of the project, and owns the
JVM's standard input, with which the JVM lives and ends. A later command is a *client* (``client``):
it sends its words, environment and open files. For each the keeper forks a process (``serve``)
which is the command: the same program from its beginning, with its imports done and a JVM at hand.
Nothing of it stays when it ends.

Rules that keep this exact:
- A command that nothing is known of is carried out by the client itself, with a Spark of its own:
  the engine is busy, hangs, is of another program, or was started in other circumstances.
- A process that ends in any other way than by exiting takes the JVM with it, as any command does.
- The keeper computes nothing, keeps no result, and may be killed at any time.
"""
