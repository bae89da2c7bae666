"""
The page as files: one folder that opens from disk, or from any web server.

A browser does not let a page on the disk read files, but it runs scripts beside it. So each
document is a script that hands its data over, and ``data/index.js`` says which document is where.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import mkdtemp

from infold.messages import command_errors
from infold.page.assets_list import INDEX, assets
from infold.page.documents import Documents

MARK = "data/index.js"
"""Whoever finds this file in a folder may replace the folder: it is an export."""

POLICY = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:"
"""As the server's; what ``file:`` means is the files beside the page, once it is on the disk."""


def export(documents: Documents, folder: Path) -> int:
    """
    Write all documents into ``folder``; how many. An earlier export there is replaced as a whole.

    Raises ``folder_in_use`` for a folder with anything else.
    """
    earlier = (folder / MARK).is_file() and (folder / INDEX).is_file()
    if folder.exists() and not earlier and (not folder.is_dir() or any(folder.iterdir())):
        raise command_errors.folder_in_use(folder=str(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        number = _write(documents, fresh)
        fresh.chmod(0o755)
        if folder.exists():
            old = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
            folder.rename(old / "old")
            fresh.rename(folder)
            shutil.rmtree(old, ignore_errors=True)
        else:
            fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return number


def _write(documents: Documents, folder: Path) -> int:
    for name, content in assets().items():
        (folder / name).write_bytes(_index(content) if name == INDEX else content)
    (folder / "data").mkdir()
    files: dict[str, str] = {}
    for number, name in enumerate(documents.names()):
        data = documents(name)
        if data is None:
            continue
        files[name] = f"data/{number}.js"
        script = f"infold.arrived({_json(name)}, {_json(data)});\n"
        (folder / files[name]).write_text(script, encoding="utf-8")
    (folder / MARK).write_text(f"infold.exported = {_json(files)};\n", encoding="utf-8")
    return len(files)


def _json(value: object) -> str:
    """JSON as a script may have it."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=str)


def _index(content: bytes) -> bytes:
    """The first page as a file: it says so, and loads the list of documents before the others."""
    text = content.decode()
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    base = '<script src="base.js" defer></script>'
    assert base in text
    text = text.replace('data-form="served"', 'data-form="files"')
    text = text.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}')
    return text.replace(base, f'{base}\n<script src="{MARK}" defer></script>').encode()
