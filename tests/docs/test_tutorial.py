"""Pages that begin in an empty folder can be typed as they are, and show what then appears."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from infold.cli import cli

DOCS = Path(__file__).parents[2] / "docs"
README = DOCS.parent / "README.md"
STEP = re.compile(
    r"^```sh\n(.*?)^```$(?:\n\n(?:\S[^\n]*\n\n)?```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
END = "-- end of a block"
INFOLD = """#!/bin/bash
case " $* " in *" --no-engine "*) exec {program} "$@";; esac
printf '%s\\0' "$PWD" "$@" > {asked}
read -r code < {answered}
cat {folder}/out
cat {folder}/err >&2
exit "$code"
"""
"""The command: this process carries it out, but for what is to have a process of its own."""

pytestmark = pytest.mark.spark


def lines_of(screen: str) -> list[str]:
    """The lines of a screen, without what differs from run to run: times, names of runs, widths."""
    for pattern, instead in (
        (r"\d+(\.\d+)? m?s\b", "N s"),
        (r"\d{8}T\d{6}-\w+", "RUN"),
        (r"as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "as of NOW"),
        (r"\b20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)? \(.* ago\)", "THEN"),
        (r"-{3,}", "---"),
        (r" +", " "),
    ):
        screen = re.sub(pattern, instead, screen)
    return [line.strip() for line in screen.splitlines() if line.strip()]


def carry_out(asked: Path, answered: Path) -> None:
    """Commands that a shell asks for, until it ends."""
    while words := asked.read_bytes().decode().split("\0")[:-1]:
        with contextlib.chdir(words[0]):
            done = CliRunner().invoke(cli, words[1:])
        (asked.parent / "out").write_text(done.stdout)
        (asked.parent / "err").write_text(done.stderr)
        answered.write_text(f"{done.exit_code}\n")


def typed(page: str, folder: Path) -> str:
    """
    All that a page prints, whose blocks are typed in one shell, one after the other.

    Each of its screens shows lines of what its block prints. Spark stays between the commands, as
    it does at a terminal.
    """
    steps = STEP.findall((DOCS / page).read_text(encoding="utf-8"))
    blocks = "".join(f"{script}\necho '{END}'\n" for script, _ in steps)
    own = folder / "own"
    own.mkdir()
    asked, answered = own / "asked", own / "answered"
    os.mkfifo(asked)
    os.mkfifo(answered)
    program = Path(sys.executable).with_name("infold")
    (own / "infold").write_text(
        INFOLD.format(program=program, asked=asked, answered=answered, folder=own)
    )
    (own / "infold").chmod(0o755)
    with (
        (folder / "printed").open("w+") as out,
        subprocess.Popen(
            ["bash", "-eu", "-o", "pipefail", "-c", f"trap ': > {asked}' EXIT\n{blocks}"],
            cwd=folder,
            env=os.environ | {"PATH": f"{own}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        ) as shell,
    ):
        carry_out(asked, answered)
        code = shell.wait(60)
        out.seek(0)
        everything = out.read()
    assert code == 0, everything
    texts = everything.split(f"{END}\n")
    missing: list[str] = []
    for (_, screen), text in zip(steps, texts, strict=False):
        there = lines_of(text)
        missing += [line for line in lines_of(screen) if line not in there]
    assert missing == [], everything
    return everything


def test_the_tutorial_runs_as_it_is(tmp_path: Path) -> None:
    """The tutorial's commands succeed and print what it shows; so does what the README shows."""
    everything = typed("tutorial.md", tmp_path)

    assert (tmp_path / "shop" / "daily.csv").exists()
    readme = README.read_text(encoding="utf-8")
    shown = "".join(re.findall(r"^```text\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL))
    expected = [line for line in lines_of(shown) if not line.startswith("$ ")]
    assert [line for line in expected if line not in lines_of(everything)] == []


def test_a_target_in_production(tmp_path: Path) -> None:
    """Protected, applied by hand, changed and taken back; it fails, is refused and stopped, and
    goes on without its ledger. What hooks are told and how commands end is what the page shows.
    """
    typed("production.md", tmp_path)


TEMPLATES = (
    (r"\{\{ config\(.*?\) \}\}|\{% if is_incremental\(\) %\}.*?\{% endif %\}", ""),
    (r"\{\{ (?:ref|source)\((?:'raw', )?'(\w+)'\) \}\}", r"\1"),
    (r"\{\{ env_var\('\w+', '(.*?)'\) \}\}", r"\1"),
)
"""dbt's templates of the page, as `dbt build --full-refresh` resolves them."""


def test_a_project_of_dbt(tmp_path: Path) -> None:
    """Imported, filled in and run over a late row, it has the rows of dbt's SQL in DuckDB."""
    typed("coming-from-dbt.md", tmp_path)

    theirs, ours = tmp_path / "shop_dbt", tmp_path / "shop"
    with duckdb.connect() as dbt:
        dbt.execute("SET TimeZone = 'UTC'")
        dbt.execute(
            "CREATE TABLE payments (payment_id varchar, user_id varchar, paid_at timestamp, "
            "currency varchar, amount decimal(18,2))"
        )
        dbt.execute(f"COPY payments FROM '{ours}/landing/raw/payments/*.json'")
        dbt.execute(f"CREATE TABLE rates AS FROM '{theirs}/seeds/rates.csv'")
        for model in ("stg_payments", "daily_revenue", "users", "visits"):
            query = (theirs / "models" / f"{model}.sql").read_text(encoding="utf-8")
            for pattern, text in TEMPLATES:
                query = re.sub(pattern, text, query, flags=re.DOTALL)
            dbt.execute(f"CREATE TABLE {model} AS {query}")
            if model != "stg_payments":
                dbt.execute(f"CREATE TABLE ours_{model} AS FROM {model} LIMIT 0")
                dbt.execute(f"COPY ours_{model} FROM '{ours}/{model}.csv' (HEADER)")
                rows, copy = (
                    dbt.execute(f"FROM {table} ORDER BY ALL").fetchall()
                    for table in (model, f"ours_{model}")
                )
                assert rows
                assert copy == rows
