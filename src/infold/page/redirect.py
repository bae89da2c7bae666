"""
A file that leads a browser to the page.

Other users of the machine see the words that programs were started with. So what a browser is
started with is the name of a file, which only this user can read, and not the address itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

_TEXT = """\
<!DOCTYPE html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={url}">
<title>infold</title>
<p><a href="{url}">The page of infold</a></p>
"""


@contextmanager
def file_that_leads_to(url: str) -> Iterator[Path]:
    """A file of this user alone that opens ``url``; it is gone at the end."""
    with TemporaryDirectory(prefix="infold-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "page.html"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(_TEXT.format(url=escape(url, quote=True)))
        yield path
