"""The wheel works alone: what it has, and the first commands of a new user, without Java."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.deep

PACKAGE = ROOT / "src" / "infold"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as pip builds it from what the Containerfile copies of the checkout."""
    folder, checkout = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("checkout")
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY (.*) /checkout/\S*$", text, re.MULTILINE)
    assert copied
    for name in " ".join(copied).split():
        if (ROOT / name).is_dir():
            left_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, checkout / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, checkout / name)
    words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, *words, str(checkout)], check=True)
    (found,) = folder.glob("infold-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    The command of an environment that has nothing but the wheel and what it depends on.

    Dependencies are those of this environment, by a path: they are half a gigabyte. The checkout
    is not on it, as files that add it are read in this environment's own folder only.
    """
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin/python"
    (site,) = folder.glob("lib/python*/site-packages")
    words = ["-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([sys.executable, *words, str(wheel)], check=True)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin/infold"


def call(command: Path, *words: str, cwd: Path) -> str:
    """What a command prints; it has to succeed, and finds no Java."""
    found = subprocess.run(
        [command, *words],
        cwd=cwd,
        env={"PATH": "/nowhere", "HOME": str(cwd), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_it_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    """Modules, the starter, the schemas, the page and the demo's data; no tests."""
    names = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert names == files


def test_a_new_user_s_first_commands(installed: Path, tmp_path: Path) -> None:
    """Version, a project, its check and its plan, by the code in the wheel and not the checkout."""
    import infold

    assert call(installed, "--version", cwd=tmp_path) == f"infold {infold.__version__}\n"
    place = call(
        installed.with_name("python"), "-c", "import infold; print(infold.__file__)", cwd=tmp_path
    )
    assert place.startswith(str(installed.parents[1]))
    assert "Wrote" in call(installed, "init", "shop", cwd=tmp_path)
    shop = tmp_path / "shop"
    assert "no findings" in call(installed, "check", cwd=shop)
    assert "new file" in call(installed, "--no-engine", "plan", cwd=shop)
    assert '"$schema"' in call(installed, "schema", cwd=shop)


@pytest.mark.parametrize("target", ["install", "test-fast"])
def test_what_make_installs_is_compiled(target: str, tmp_path: Path) -> None:
    """Commands start as fast where the environment forbids Python to keep what it compiles."""
    words = ["make", "--dry-run", "--always-make", target, f"VENV={tmp_path}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)

    assert f"{tmp_path}/bin/python -m compileall -q src" in done.stdout
