"""``infold ui``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from infold.page.documents import Documents


@click.command("ui")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="The port of this machine; one that is free by default.",
)
@click.option("--allow-runs", is_flag=True, help="Let the page start runs, as `infold run` does.")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@click.option(
    "--export",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the page into a folder instead: files that open from disk.",
)
def command(port: int | None, allow_runs: bool, opens: bool, folder: Path | None) -> int | None:
    """
    Show the project in a browser: what is stale, which rows were late, why a count changed.

    The page only looks, unless --allow-runs lets it start runs. It is for this machine alone: its
    address has a token. It ends with Ctrl-C, and a run that it started with it.
    """
    import webbrowser
    from contextlib import ExitStack

    from infold import api
    from infold.page.documents import Documents
    from infold.page.server import PageRuns, PageServer, file_that_leads_to, run_command
    from infold.system import signals

    root, target = click.get_current_context().obj
    api.open_project(root, target)  # its mistakes are the command's
    documents = Documents(root, target)
    if folder is not None:
        if port is not None or opens or allow_runs:
            raise click.UsageError(
                "--export writes files; leave --port, --open and --allow-runs out."
            )
        return _export(documents, folder)
    with ExitStack() as until_the_end:
        runs = PageRuns(run_command(root, target)) if allow_runs else None
        if runs is not None:
            until_the_end.callback(runs.end)
        server = until_the_end.enter_context(PageServer(documents, port or 0, runs))
        click.echo(f"The page is at {server.url}\nIt ends with Ctrl-C.")
        try:
            if opens:
                file = until_the_end.enter_context(file_that_leads_to(server.url))
                webbrowser.open(file.as_uri())
            server.serve_forever(poll_interval=0.2)
        except signals.Stopped:
            return signals.exit_code()
    return None


def _export(documents: Documents, folder: Path) -> int | None:
    from infold.messages.errors import ExitCode
    from infold.page.export import export
    from infold.render.formatting import count

    exported = export(documents, folder)
    click.echo(f"{count(exported.documents, 'document')} written. Open {folder / 'index.html'}")
    if not exported.errors:
        return None
    click.echo(f"{count(len(exported.errors), 'document')} with an error in place of data:")
    for name, text in exported.errors.items():
        click.echo(f"  {name}: {text}")
    return int(ExitCode.FAILED)
