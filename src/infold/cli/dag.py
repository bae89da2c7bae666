"""``infold dag``."""

from __future__ import annotations

import click

from infold.cli import completing, output, shared_options
from infold.cli.output import print_json

FORMATS = ("text", "mermaid", "dot", "svg")


@click.command("dag")
@click.argument("terms", nargs=-1, metavar="[TERM...]", shell_complete=completing.terms)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="For a terminal, Markdown, Graphviz, or as a picture.",
)
@shared_options.as_json
def command(terms: tuple[str, ...], format_: str, as_json: bool) -> None:
    """
    Draw the graph of models.

    Of all models or of those that TERM names, with the sources that they read: each is below all
    that it reads. It follows from the project's files alone.
    """
    from infold.planning.selection import select_models
    from infold.render.pictures import graph as graph_text
    from infold.render.pictures.graph import graph_of, graph_screen, svg

    if as_json and format_ != FORMATS[0]:
        raise click.UsageError("--json is a format too: leave out --format.")
    project = shared_options.opened()
    graph = graph_of(project, select_models(project, terms))
    if as_json:
        print_json(graph_text.graph_json(project, graph))
    elif format_ == "mermaid":
        click.echo(graph_text.mermaid(graph))
    elif format_ == "dot":
        click.echo(graph_text.dot(project, graph))
    elif format_ == "svg":
        click.echo(svg(project, graph))
    else:
        click.echo(graph_screen(project, graph, output.terminal_look()))
