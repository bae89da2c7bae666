"""``unique_key``, ``prefer`` and ``deduplicate`` of events: what copies are, and which is kept."""

from __future__ import annotations

import re
from collections.abc import Collection

from infold.core.model import Deduplicate, Model
from infold.declare.keys import Keys
from infold.messages import findings

_PREFER = re.compile(r"\s*(?P<column>\w+|`[^`]+`)(?:\s+(asc|desc))?\s*\Z", re.IGNORECASE)


def read_prefer(keys: Keys) -> tuple[str, ...]:
    """Columns with their directions, in the order in which they decide."""
    found = keys.texts("prefer")
    for text in found:
        if not _PREFER.match(text):
            at, known = keys.at("prefer"), ("column", "column desc")
            keys.errors.append(findings.bad_value(at, key="prefer", value=text, known=known))
    return found


def check_copies(keys: Keys, model: Model, own: Collection[str]) -> None:
    """
    Note what tells no copies apart.

    ``own`` are the keys that the model has itself: a `prefer` of the project's defaults may decide
    in other models.
    """
    time = model.timeseries.event_time_column.lower() if model.timeseries else ""
    unique, everywhere = {*map(str.lower, model.unique_key)}, Deduplicate.EVERYWHERE
    if model.deduplicate is everywhere and time in unique:
        # Copies at other times have other keys then.
        where = f"a unique_key with the event time, {time!r}, in it"
        keys.errors.append(
            findings.needless_key(keys.at("deduplicate"), key="deduplicate", where=where)
        )
    listed = keys.entries.get("prefer")
    if listed is None or "prefer" not in own:
        return
    for item in listed.items or (listed,):
        found = _PREFER.match(item.text)
        column = found["column"].strip("`").lower() if found else None
        if column in unique:
            where, todo = "`prefer`: copies have one key", "Name a column in which copies differ."
        elif column == time and model.deduplicate is not everywhere:
            where = "`prefer`: copies have one event time"
            todo = f"Rows with one key at other times are copies with `deduplicate: {everywhere}`."
        else:
            continue
        keys.errors.append(findings.needless_key(item.at, key=item.text, where=where, todo=todo))
