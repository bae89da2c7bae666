"""What keeps a scheduler from running a project: the command, and what it answers."""

from __future__ import annotations

from infold.messages.message import Message, Near

command_missing = Message(
    "infold-not-started",
    "the command {command} cannot be started",
    {"why": "{why}"},
    "Give the path of the command in the environment that infold is installed in "
    "(infold_command='/srv/shop/.venv/bin/infold').",
)

no_graph = Message(
    "no-graph",
    "{command} did not print the graph of a project",
    {"why": "{why}"},
    "Try it by hand; `infold check` lists all mistakes of a project.",
)

bad_graph_file = Message(
    "bad-graph-file",
    "{file} is not the graph of a project",
    {"why": "{why}"},
    "Write it again where the project is: infold dag --json > graph.json",
)

no_such_field = Message(
    "no-such-field",
    "a connection has no field {field}",
    {"variable": "{variable}", "fields": Near("{field}")},
    "Write it as CONNECTION.FIELD; of `extra` as CONNECTION.extra.KEY.",
)
