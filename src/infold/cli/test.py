"""``infold test``."""

from __future__ import annotations

from pathlib import Path

import click

from infold.cli import completing, shared_options
from infold.cli.output import print_json, write_text
from infold.core.unit_tests import SHUFFLES
from infold.messages.errors import ExitCode


@click.command("test")
@click.argument("terms", nargs=-1, metavar="[TERM...]")
@click.option("--no-shuffle", is_flag=True, help="Only run the arrivals as they are written.")
@click.option(
    "--shuffles",
    type=click.IntRange(min=1),
    default=SHUFFLES,
    metavar="N",
    help="Try N random orders and cuts of each test; 1 by default.",
)
@click.option("--seed", type=int, default=0, metavar="N", help="What random orders are drawn by.")
@click.option("--no-cache", is_flag=True, help="Also run what passed before, unchanged.")
@click.option("--coverage", is_flag=True, help="Also list what no test looks at.")
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the results as JUnit's XML, too.",
)
@click.option(
    "--new",
    metavar="MODEL",
    shell_complete=completing.models,
    help="Write a test of this model from real rows; run none.",
)
@click.option(
    "--from",
    "start",
    metavar="ID_OR_CELL",
    help="With --new: the session, or the cell, whose rows the test shows.",
)
@click.option(
    "--mask",
    multiple=True,
    metavar="COLUMN",
    shell_complete=completing.columns,
    help="With --new: replace the values of this column of text by others. Repeatable.",
)
@shared_options.as_json
def command(
    terms: tuple[str, ...],
    no_shuffle: bool,
    shuffles: int,
    seed: int,
    no_cache: bool,
    coverage: bool,
    junit: Path | None,
    new: str | None,
    start: str | None,
    mask: tuple[str, ...],
    as_json: bool,
) -> int:
    """
    Run the project's unit tests: tests/*.md.

    Each is run by itself over the rows it gives, far from any target's tables: its arrivals in
    order, and then in other orders and cuts, which must come to the same tables. TERM is a test's
    name, its file, or a model that it expects rows of; globs are fine. Exit code 1 says that a
    test failed.

    A test that passed before is run again if anything has changed that it follows from.

    With --new, a test is written from rows of a table, and none is run.
    """
    if new is not None or start is not None:
        return _write_test(new, start, mask)
    if mask:
        why = "--mask is for --new."
        raise click.UsageError(why)
    from infold.render import unit_tests as render
    from infold.testing import run_tests

    project = shared_options.opened(declared=True)
    tests = run_tests.read_project_tests(project, terms)
    report = run_tests.run_tests(
        project,
        tests,
        seed=seed,
        shuffles=0 if no_shuffle else shuffles,
        coverage=coverage,
        cached=not no_cache,
        done=lambda result: None if as_json else click.echo(render.result_line(result)),
    )
    if report.runs:
        from infold.spark.jvm import class_archive

        class_archive.make_later()
    if junit is not None:
        write_text(junit, render.junit_xml(report))
    if as_json:
        print_json(render.report_json(report))
    else:
        click.echo(f"\n{render.report_screen(report)}")
    return 0 if report.passed else ExitCode.FAILED


def _write_test(new: str | None, start: str | None, mask: tuple[str, ...]) -> int:
    """Write a test of a model from the rows of a session or a cell."""
    if new is None or start is None:
        why = "--new and --from go together: a model, and a session or a cell of it."
        raise click.UsageError(why)
    from infold.testing.new_test import write_test

    path, name = write_test(shared_options.opened(), new, start, mask)
    click.echo(f"Wrote the test {name!r} to {path}. `infold test {path.stem}` runs it.")
    return 0
