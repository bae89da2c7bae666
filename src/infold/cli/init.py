"""``infold init``."""

from __future__ import annotations

import re
from pathlib import Path

import click

from infold.cli.output import refuse_used_folder


@click.command("init")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def command(directory: Path) -> None:
    """
    Write a small project into DIR that runs as it is.

    A folder of click events, deduplicated events, sessions and a daily table of them; DIR is
    made, or is empty.
    """
    refuse_used_folder(directory)
    written = write_project(directory)
    click.echo(f"Wrote {len(written)} files:\n")
    for path in written:
        click.echo(f"  {directory / path}")
    click.echo(
        f"""
Go on with

  cd {directory}
  infold plan                        # what would be done, and why
  infold run                         # do it
  infold show sessions
  mv later/*.json landing/clicks/    # a late event that joins two sessions, a copy, a new one
  infold run
  infold verify                      # the tables equal a rebuild
  infold test                        # the cases in tests/, without any of these tables"""
    )


def write_project(directory: Path) -> list[str]:
    """Copy the starter into ``directory`` under its name; the files written, in order."""
    from importlib.resources import as_file, files

    name = re.sub(r"\W+", "_", directory.resolve().name, flags=re.ASCII).strip("_")
    name = name if name[:1].isalpha() else f"project_{name}".rstrip("_")
    written = []
    with as_file(files("infold") / "starter") as starter:
        for path in sorted(starter.rglob("*")):
            if not path.is_file() or path.suffix in {".py", ".pyc"}:
                continue
            place = path.relative_to(starter).as_posix().replace("gitignore", ".gitignore")
            text = path.read_text(encoding="utf-8")
            if place == "infold.yml":
                text = text.replace("name: shop", f"name: {name}")
            target = directory / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            written.append(place)
    return written
