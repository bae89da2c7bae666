"""
Environments of Python with a scheduler, and without any of infold's dependencies.

Each is what a lock file beside this one says, in ``build/schedulers``, and stays there until the
lock changes: installing Airflow takes longer than testing with it. infold is in it by a path.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner

from infold.cli import cli

ROOT = Path(__file__).parents[2]
LOCKS = Path(__file__).parent
STAND_IN = ROOT / "tests/orchestration/stand_in.py"


def python_with(scheduler: str) -> Path:
    """The Python of the environment of a scheduler, which is made if it is not there."""
    lock = LOCKS / f"{scheduler}.lock"
    of = hashlib.sha256(f"{sys.version}{lock.read_text()}".encode()).hexdigest()[:12]
    folder = ROOT / "build/schedulers" / f"{scheduler}-{of}"
    python, whole = folder / "bin/python", folder / "installed"
    if not whole.exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=False, symlinks=True)
        # The lock has all of it, so nothing has to be resolved; what is used is compiled then.
        words = ["--quiet", "--no-compile", "--no-deps", "--require-hashes", "-r", str(lock)]
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
        subprocess.run([*pip, *words], check=True)
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "infold.pth").write_text(f"{ROOT / 'src'}\n")
        whole.touch()
    return python


def examples_for_starter(page: str, folder: Path) -> list[str]:
    """The Python of a page, of a new project of `infold init` in place of the one in /srv/shop."""
    shop = folder / "shop"
    assert CliRunner().invoke(cli, ["init", str(shop)]).exit_code == 0
    command = folder / "infold"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m infold "$@"\n')
    command.chmod(0o755)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    text = text.replace("/srv/shop/.venv/bin/infold", str(command)).replace("/srv/shop", str(shop))
    return [code.partition("```")[0] for code in text.split("```python\n")[1:]]


def run_with(python: Path, *words: str, env: Mapping[str, str], cwd: Path) -> str:
    """What a process of that Python prints; it has to succeed. It keeps what it compiles."""
    left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    done = subprocess.run(
        [python, *words],
        cwd=cwd,
        env={**{k: v for k, v in os.environ.items() if k not in left_out}, **env},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout
