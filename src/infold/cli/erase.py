"""``infold erase``."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infold.cli import shared_options
from infold.cli.output import print_json, summarized

if TYPE_CHECKING:
    from infold.core.project import Project


@click.command("erase")
@click.argument("erasure", required=False)
@click.option("--value", "values", multiple=True, metavar="KEY", help="A key. Repeatable.")
@click.option(
    "--from",
    "file",
    metavar="FILE",
    help="The keys in a file, one a line; - for what is piped in.",
)
@click.option("--before", metavar="TIME", help="Only rows dated before this.")
@click.option("--source", metavar="NAME", help="Only rows of this source.")
@click.option("--reason", default="", metavar="TEXT", help="Why; kept with the request.")
@click.option(
    "--request", "request_id", default="", metavar="ID", help="What you call the request."
)
@click.option(
    "--again", is_flag=True, help="Have all earlier requests apply to columns declared since."
)
@click.option("--later", is_flag=True, help="Record the request; the next run erases the rows.")
@click.option(
    "--purge", is_flag=True, help="Also rewrite files with erased rows, and drop older snapshots."
)
@click.option(
    "--prove", is_flag=True, help="Look for erased persons in all files and the ledger; say where."
)
@click.option(
    "--landing",
    type=click.Choice(("leave", "rewrite")),
    metavar="WHAT",
    help="With --purge: leave files of sources, or rewrite them without erased rows."
    " With --prove: rewrite counts their rows as found.",
)
@click.option("--dry-run", is_flag=True, help="Say which stored rows would go, and record nothing.")
@click.option(
    "--max-rows",
    type=click.IntRange(min=0),
    metavar="N",
    help="Refuse before recording when more stored rows than this would go.",
)
@shared_options.wait
@shared_options.as_json
def command(
    erasure: str | None,
    values: tuple[str, ...],
    file: str | None,
    before: str | None,
    source: str | None,
    reason: str,
    request_id: str,
    again: bool,
    later: bool,
    purge: bool,
    prove: bool,
    landing: str | None,
    dry_run: bool,
    max_rows: int | None,
    wait: float,
    as_json: bool,
) -> int:
    """
    Erase the rows of persons, by keys that infold.yml declares, now and whenever they come again.

    ERASURE is a name in `erasures`. The request is kept for good, its keys as keyed hashes alone.
    Then a run brings all tables up to date: they are as if the rows had never come. With --purge
    no file of them has the rows any more; without ERASURE it does that for earlier requests.
    With --prove, shows what is left of the erased, of keys given by --value in texts as well.
    Without arguments, lists the requests.
    """
    keys = (*values, *(_keys_of(file) if file else ()))
    _refuse_unfit(landing, later=later, purge=purge, prove=prove)
    rewrites = landing == "rewrite"
    if prove:
        return _prove(keys, landing=rewrites, as_json=as_json)
    if erasure is None:
        if keys or again:
            why = "Name what is erased: a name in `erasures` of infold.yml."
            raise click.UsageError(why)
        return _without_erasure(wait, purge=purge, landing=rewrites, as_json=as_json)
    for why, wrong in (
        ("Give keys, with --value or --from; or --again, and no key.", bool(keys) == again),
        ("--max-rows counts the rows of keys: not with --again.", again and max_rows is not None),
        ("--purge is about rows that were erased: not with --later.", later and purge),
    ):
        if wrong:
            raise click.UsageError(why)
    from infold.planning.selection import parse_instant

    project = shared_options.opened()
    asked = _Asked(erasure, keys, source, parse_instant("--before", before) if before else None)
    if dry_run:
        _show_stored_rows(project, asked, max_rows, as_json=as_json)
        return 0
    kept = {"reason": reason, "request": request_id, "max_rows": max_rows}
    number = _record(project, asked, kept, later=later, as_json=as_json)
    shape: dict[str, Any] = {}
    code = 0
    if not later:
        shape |= _run(project, wait, as_json=as_json)
        if purge:
            purged, code = _purge(project, wait, landing=rewrites, as_json=as_json)
        else:
            purged, code = purge_if_due(project, wait, as_json=as_json)
        shape |= purged
    if as_json:
        print_json({**_shape_of(project, number), **shape})
    return code


def _refuse_unfit(landing: str | None, *, later: bool, purge: bool, prove: bool) -> None:
    """Raise UsageError for options that do not go together."""
    if landing and not (purge or prove):
        why = "--landing is about what --purge writes again, or --prove finds: with one of them."
        raise click.UsageError(why)
    if later and purge:
        why = "--purge is about rows that were erased: not with --later."
        raise click.UsageError(why)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request is about."""

    erasure: str
    keys: Collection[str]
    source: str | None
    before: int | None


def _without_erasure(wait: float, *, purge: bool, landing: bool, as_json: bool) -> int:
    """List the requests, or purge what earlier ones left; the exit code."""
    if not purge:
        _list_requests(as_json=as_json)
        return 0
    shape, code = _purge(shared_options.opened(), wait, landing=landing, as_json=as_json)
    if as_json:
        print_json(shape)
    return code


def _record(
    project: Project, asked: _Asked, kept: dict[str, Any], *, later: bool, as_json: bool
) -> int:
    """Record the request, as the options of ``api.erase`` say; its number."""
    from infold import api
    from infold.render.erasures import recorded_screen

    request = api.erase(
        project,
        asked.erasure,
        asked.keys,
        source=asked.source,
        before=asked.before,
        **kept,
    )
    if not as_json:
        click.echo(recorded_screen(request, project.target.command if later else ""))
    return request.number


def _shape_of(project: Project, number: int) -> dict[str, Any]:
    """What is printed of a request as JSON."""
    from infold import api
    from infold.render.erasures import requests_json

    return requests_json(
        [one for one in api.list_erasures(project) if one.request.number == number]
    )


def _list_requests(*, as_json: bool) -> None:
    """The requests, the newest first."""
    from infold import api
    from infold.render.erasures import requests_json, requests_screen

    project = shared_options.opened()
    asked, notes = api.list_erasures(project), api.told_of_requests(project)
    if as_json:
        print_json({**requests_json(asked), "notes": list(notes)})
    else:
        click.echo("\n".join((requests_screen(asked), *notes)))


def _show_stored_rows(
    project: Project, asked: _Asked, max_rows: int | None, *, as_json: bool
) -> None:
    """The stored rows that would be erased, and the files that a purge would write again."""
    from infold import api
    from infold.render.erasures import stored_json, stored_screen
    from infold.running.erasures import refuse_more_rows

    stored = api.stored_rows_of(
        project, asked.erasure, asked.keys, source=asked.source, before=asked.before
    )
    files, took = api.rewritten_files(project, stored), api.erasing_took(project)
    if as_json:
        print_json(stored_json(stored, files, took))
    else:
        click.echo(stored_screen(stored, files, took))
    if max_rows is not None:
        refuse_more_rows(stored, max_rows)


def _prove(values: Collection[str], *, landing: bool, as_json: bool) -> int:
    """Print what is left of erased persons; the exit code."""
    from infold import api
    from infold.inspecting.certificates import fingerprint_of, signed, signing_key
    from infold.messages.errors import ExitCode
    from infold.render.erasures import proof_json, proof_screen

    project = shared_options.opened()
    key = signing_key(project)  # before all files are read
    proof = api.prove_erased(project, values)
    if as_json:
        shape = proof_json(proof, project.name, project.target.name)
        print_json(shape if key is None else signed(shape, key))
    else:
        fingerprint = "" if key is None else fingerprint_of(key)
        click.echo(proof_screen(proof, project.name, project.target.name, fingerprint))
    remains = landing and any(one.rows for one in proof.landing)
    return ExitCode.DIFFERENT if proof.found or remains else 0


def _purge(
    project: Project, wait: float, *, landing: bool, as_json: bool
) -> tuple[dict[str, Any], int]:
    """Leave no file with erased rows; what is printed of it as JSON, and the exit code."""
    from infold import api
    from infold.api.warm_engines import stop_engine
    from infold.cli.progress import progress
    from infold.render.erasures import purged_json, purged_screen

    with progress(project, quiet=as_json, verbose=False) as shown:
        done = api.purge(project, landing=landing, wait=wait, progress=shown)
    stop_engine(*click.get_current_context().obj)  # the files of its shuffles go with it
    if not as_json:
        click.echo(purged_screen(done))
    return {"purged": purged_json(done)}, 1 if done.left or any(
        one.why for one in done.files
    ) else 0


def purge_if_due(project: Project, wait: float, *, as_json: bool) -> tuple[dict[str, Any], int]:
    """The same at the end of a run, if the target says that it is time."""
    from infold.api.purging import is_due

    if project.target.erasure_purge is None or not is_due(project):
        return {}, 0
    return _purge(project, wait, landing=False, as_json=as_json)


def _run(project: Project, wait: float, *, as_json: bool) -> dict[str, Any]:
    """Bring the tables up to date with what was asked; what is printed of it as JSON."""
    from infold import api
    from infold.cli.progress import progress
    from infold.render import json_shapes

    with summarized(project, as_json=as_json, verbose=False) as print_summary:
        with progress(project, quiet=as_json, verbose=False) as shown:
            result = api.run(project, wait=wait, command="erase", progress=shown)
        if not as_json:
            print_summary(result)
    return {"run": json_shapes.run(result)}


def _keys_of(file: str) -> tuple[str, ...]:
    """The keys in a file, or in what is piped in."""
    from infold.messages import command_errors
    from infold.running.erasures import keys_in

    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        keys = keys_in(content.decode("utf-8-sig"))
    except OSError as error:
        what = f"{file} cannot be read: {error.strerror}"
        raise command_errors.bad_erasure(what=what, fact="") from error
    except UnicodeDecodeError as error:
        raise command_errors.bad_erasure(what=f"{file} is not UTF-8 text", fact="") from error
    if not keys:
        raise command_errors.bad_erasure(what=f"{file} has no key in it", fact="")
    return keys
