"""
For MkDocs: pages beside this folder are pages of the site too.

The measurements and the changelog are elsewhere in the repository. Links to them are written for
readers of the files, and turned here into links inside the site. Links to code lose their target.
The theme would fetch a small script for the search of files that are opened without a server; the
site has its own copy (``assets/iframe-worker.js``).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
BESIDE = {"bench/RESULTS.md": "measurements.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the site, by their place in the repository."""

SHIM = "https://unpkg.com/iframe-worker/shim"

_OUTWARD = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?:src|tests|bench)/[^)#]*|[A-Z]+\.md)(#[^)]*)?\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages from beside this folder."""
    for path, name in BESIDE.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Turn links that leave this folder into links of the site, or into plain text."""
    up = "../" * page.file.src_uri.count("/")

    def inside(link: re.Match[str]) -> str:
        text, path, anchor = link.groups()
        target = BESIDE.get(path)
        return f"[{text}]({up}{target}{anchor or ''})" if target else text

    return _OUTWARD.sub(inside, markdown)


def on_post_page(output: str, *, page: Page, **_: Any) -> str:
    """Load nothing from elsewhere."""
    up = "../" * page.file.dest_uri.count("/")
    return output.replace(SHIM, f"{up}assets/iframe-worker.js")


def on_post_template(output_content: str, **_: Any) -> str:
    """Nor does the page for what is not found."""
    return output_content.replace(SHIM, "assets/iframe-worker.js")
