"""``infold format``."""

from __future__ import annotations

import click

from infold.cli import completing


@click.command("format")
@click.argument("models", nargs=-1, metavar="[MODEL...]", shell_complete=completing.models)
@click.option(
    "--check", "check_only", is_flag=True, help="Write nothing; exit code 1 if a file would change."
)
def command(models: tuple[str, ...], check_only: bool) -> int:
    """
    Lay out the SQL of models, of all or of these.

    Lines are broken and indented again, and keywords get small letters. Names, comments and front
    matter stay as they are. A file is written only if its query has the same meaning and
    fingerprint, so that no table is built again because of it.
    """
    from infold.declare.folder import PROJECT_FILE
    from infold.declare.formatted import format_models
    from infold.messages import command_errors
    from infold.messages.errors import ExitCode, InfoldErrors
    from infold.render.formatting import count

    root = click.get_current_context().obj[0].resolve()
    if not (root / PROJECT_FILE).is_file():
        raise command_errors.no_project(path=str(root))
    formatted = format_models(root, models)
    for file, text in formatted.changed.items():
        if not check_only:
            (root / file).write_bytes(text.encode())
        click.echo(file)
    done = "would be formatted" if check_only else "formatted"
    are = "it is" if len(formatted.same) == 1 else "they are"
    rest = f"{count(len(formatted.same), 'file')} left as {are}" if formatted.same else "no other"
    click.echo(f"{count(len(formatted.changed), 'file')} {done}, {rest}.")
    if formatted.left:
        raise InfoldErrors(formatted.left)
    return ExitCode.FAILED if check_only and formatted.changed else 0
