"""The kinds of SQLMesh, each with the ways in which infold may keep its models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from infold.importing.draft import Way, any_result
from infold.importing.grouped import grouped_by
from infold.importing.sqlmesh.blocks import inner, names, properties, unquoted
from infold.importing.yaml_lines import date_of

_WHOLE = "it is built whole when an input changed, and not cell by cell"
_HOURLY = ("@hourly", "hour", "half_hour", "quarter_hour", "five_minute")


@dataclass(frozen=True, slots=True)
class Kept:
    """How a model is kept: its ways, its time column, and what is said of the change."""

    ways: tuple[Way, ...]
    time: str = ""
    notes: tuple[str, ...] = ()


class NoKindError(Exception):
    """A kind that infold has no equal of; the argument says why."""


def kind_of(block: Mapping[str, str], default: str) -> tuple[str, dict[str, str]]:
    """The kind's name, and its own properties."""
    value = block.get("kind") or default or "VIEW"
    name = value.split("(", 1)[0].strip().upper()
    return name, properties(value) if "(" in value else {}


def kept_as(kind: str, own: Mapping[str, str], block: Mapping[str, str], tree: exp.Query) -> Kept:
    """How a model of a kind is kept. Raises NoKindError."""
    if kind == "VIEW":
        notes = ("materialized view: it is a view, which stores nothing",)
        return Kept(
            (Way({"materialization": "view"}), any_result({})),
            notes=notes if own.get("materialized", "").lower() == "true" else (),
        )
    if kind == "EMBEDDED":
        return Kept((Way({"materialization": "view"}), any_result({})), notes=("a view",))
    if kind == "FULL":
        return Kept(_TABLE)
    if kind == "INCREMENTAL_BY_TIME_RANGE":
        return _by_time(own, block)
    if kind in {"INCREMENTAL_BY_UNIQUE_KEY", "INCREMENTAL_BY_PARTITION"}:
        return _by_key(kind, own, tree)
    if kind in {"SCD_TYPE_2", "SCD_TYPE_2_BY_TIME", "SCD_TYPE_2_BY_COLUMN"}:
        return _versions(kind, own)
    if kind == "INCREMENTAL_UNMANAGED":
        raise NoKindError("INCREMENTAL_UNMANAGED adds what each run finds, and has no definition")
    raise NoKindError(f"kind {kind}: infold has none like it")


_TABLE = (Way({"materialization": "table"}), any_result({}))


def _by_time(own: Mapping[str, str], block: Mapping[str, str]) -> Kept:
    time = (names(own.get("time_column", "")) or [""])[0]
    notes = []
    incremental = _settings(own, block)
    if start := date_of(block.get("start")):
        incremental["start"] = start
    elif block.get("start"):
        notes.append(f"start {block['start']} is relative to now: name a date")
    if own.get("lookback", "0") != "0":
        notes.append("lookback is gone: late rows of any age are found by their files")
    if grain := _grain(block):
        incremental["unique_key"] = grain
    keys = {
        "materialization": "table",
        "timeseries": {"event_time_column": time, "granularity": _cell(block)},
        "incremental": incremental,
    }
    lost = f"{_WHOLE}; what SQLMesh computed over the rows of an interval is computed over all"
    return Kept((Way(keys, lost), *_TABLE), time, tuple(notes))


def _settings(own: Mapping[str, str], block: Mapping[str, str]) -> dict[str, Any]:
    """The keys that have the same name here, and mean the same."""
    texts = {key: unquoted(block.get(key, "")) for key in ("cron", "cron_tz")}
    numbers = {key: own.get(key, "") for key in ("batch_size", "batch_concurrency")}
    flags = {key: own.get(key) or block.get(key, "") for key in ("forward_only", "allow_partials")}
    return {
        **{key: text for key, text in texts.items() if text},
        **{key: int(text) for key, text in numbers.items() if text.isdigit()},
        **{key: True for key, text in flags.items() if text.lower() == "true"},
    }


def _cell(block: Mapping[str, str]) -> str:
    """The cell of a table: SQLMesh's interval unit, or the one that follows from its cron."""
    unit = unquoted(block.get("interval_unit", "")).lower()
    if unit in {"day", "week", "month", "quarter", "year"}:
        return unit
    cron = unquoted(block.get("cron", "@daily")).lower()
    often = cron.split()[1:2] == ["*"]
    return "hour" if unit in _HOURLY or (not unit and (cron in _HOURLY or often)) else "day"


def _grain(block: Mapping[str, str]) -> list[str]:
    """The key that a model declares; none of an expression."""
    found = names(block.get("grain", "") or block.get("grains", ""))
    return found if all(name.isidentifier() for name in found) else []


def _by_key(kind: str, own: Mapping[str, str], tree: exp.Query) -> Kept:
    keys = [name.lower() for name in names(own.get("unique_key", ""))]
    notes = [
        "infold keeps what the query gives over all rows: those that vanish upstream vanish here"
    ]
    if own.get("when_matched") or own.get("merge_filter"):
        notes.append("when_matched and merge_filter are gone: the query says what the table is")
    if kind == "INCREMENTAL_BY_UNIQUE_KEY" and grouped_by(tree) != set(keys):
        notes.append(
            f"a merge keeps one row of {', '.join(keys)}, infold each row that the query gives: "
            "add an audit `unique`, or choose the newest in the query"
        )
    if any(True for _ in tree.find_all(exp.Window)):
        notes.append("window functions are over all rows, not over those of an interval")
    ways = list(_TABLE)
    if keys and grouped_by(tree) == set(keys):
        ways.insert(0, Way({"materialization": "cumulative_aggregate"}, f"{_WHOLE}, nor folded"))
    return Kept(tuple(ways), notes=tuple(notes))


def _versions(kind: str, own: Mapping[str, str]) -> Kept:
    versions: dict[str, Any] = {"updated_at": unquoted(own.get("updated_at_name", "updated_at"))}
    notes = ["the history begins with the rows of the inputs: what was stored before is not in it"]
    if kind == "SCD_TYPE_2_BY_COLUMN":
        if "updated_at_name" not in own:
            raise NoKindError(
                "SCD_TYPE_2_BY_COLUMN takes the time of a run for that of a row; name a column "
                "with the row's own time in updated_at"
            )
        columns = names(own.get("columns", ""))
        versions["columns"] = "*" if columns == ["*"] else columns
    if own.get("invalidate_hard_deletes", "").lower() == "true":
        versions["invalidate_hard_deletes"] = True
        notes.append("invalidate_hard_deletes: for inputs that are whole snapshots")
    for key, ours in (("valid_from_name", "valid_from"), ("valid_to_name", "valid_to")):
        if unquoted(own.get(key, ours)) != ours:
            notes.append(f"{unquoted(own[key])} is {ours}")
    keys = {
        "materialization": "scd_type_2",
        "unique_key": names(own.get("unique_key", "")),
        "scd_type_2": versions,
    }
    return Kept((Way(keys),), notes=tuple(notes))


def seed_of(own: Mapping[str, str]) -> tuple[str, str]:
    """The path of a seed's file, and its delimiter."""
    settings = properties(f"s({inner(own['csv_settings'])})") if "csv_settings" in own else {}
    return unquoted(own.get("path", "")), unquoted(settings.get("delimiter", ","))
