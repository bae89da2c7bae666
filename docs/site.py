"""
For MkDocs: pages beside this folder are pages of the site too.

The measurements and the changelog stand elsewhere in the repository. Links to them are written for
readers of the files, and turned here into links inside the site. Links to code lose their target.

Diagrams are drawn in the browser by mermaid, which the theme fetches when a page has one. Where
there is no network, ``INFOLD_MERMAID=FILE make docs`` puts that copy of ``mermaid.min.js`` into the
site. Without either, a page shows the diagram's text.
"""

from __future__ import annotations

import os
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
"""Pages of the site, by where they stand in the repository."""

_OUTWARD = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?:src|tests|bench)/[^)#]*|[A-Z]+\.md)(#[^)]*)?\)")


MERMAID = "assets/javascripts/mermaid.min.js"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Load the site's own copy of mermaid, if there is one."""
    if os.environ.get("INFOLD_MERMAID"):
        config.extra_javascript.append(MERMAID)
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages from beside this folder."""
    for path, name in BESIDE.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    if own := os.environ.get("INFOLD_MERMAID"):
        files.append(File.generated(config, MERMAID, abs_src_path=str(Path(own).resolve())))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Turn links that leave this folder into links of the site, or into plain text."""
    up = "../" * page.file.src_uri.count("/")

    def inside(link: re.Match[str]) -> str:
        text, path, anchor = link.groups()
        target = BESIDE.get(path)
        return f"[{text}]({up}{target}{anchor or ''})" if target else text

    return _OUTWARD.sub(inside, markdown)
