"""``lineage`` of a target: where events of OpenLineage are sent."""

from __future__ import annotations

from dataclasses import replace

from infold.core.lineage import Lineage
from infold.declare.hooks import read_headers, read_url
from infold.declare.keys import Keys

LINEAGE_KEYS = ("url", "file", "headers", "namespace", "timeout")
OF_REQUESTS = ("headers", "timeout")


def read_lineage(keys: Keys) -> Lineage | None:
    """What a target declares; None: nothing is sent."""
    section = keys.section("lineage", f"lineage of {keys.where}")
    if section is None:
        return None
    section.check(LINEAGE_KEYS)
    plain = Lineage()
    if "url" in section.entries:
        if "file" in section.entries:
            todo = "Events go to a URL or into a file; leave one of them out."
            section.needless(("file",), "events with a `url`", todo)
    elif "file" not in section.entries:
        section.missing("url", why="events go to a URL, or into a `file`")
    else:
        todo = "It is of requests to a `url`. Leave it out."
        section.needless(OF_REQUESTS, "events in a file", todo)
    return replace(
        plain,
        url=read_url(section, "url"),
        file=section.text("file") or "",
        headers=tuple(read_headers(section)),
        namespace=section.text("namespace") or plain.namespace,
        timeout=section.span("timeout") or plain.timeout,
    )
