"""
Writes the JSON Schemas of infold.yml and of front matter, which editors check files with.

Which keys there are is taken from the code that reads them; their types, defaults and meanings
from docs/reference/keys.md, which other tests compare with the code. A schema refuses nothing that
infold accepts. It cannot see what lies in other files, such as the columns of a table.

    python -m docs.schemas
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import infold.declare
from infold.core import interval
from infold.core.audits import Severity, Within
from infold.core.formats import Format
from infold.core.hooks import When
from infold.core.model import Override
from infold.core.object_store import APPLICATION, AWS_KEY, OPTION_KEYS
from infold.core.storages import CatalogType
from infold.declare import audits, catalogs, erasures, models, project, seeds, sources, targets
from infold.declare.keys import NAME

PAGE = (Path(__file__).parent / "reference" / "keys.md").read_text(encoding="utf-8")


class Row(NamedTuple):
    """One key of the page; ``key`` may have the mapping that it is in: ``catalog.type``."""

    section: str
    key: str
    type: str
    default: str
    meaning: str


def rows() -> list[Row]:
    """All keys with their types and defaults; the table of model keys has one column more."""
    found = []
    for part in re.split(r"^#{2,4} ", PAGE, flags=re.MULTILINE)[1:]:
        section, _, text = part.partition("\n")
        for line in re.findall(r"^\| (`[\w.]+` \|.*) \|$", text, re.MULTILINE):
            key, *cells = line.split(" | ")
            kind, default, meaning = cells[-3:]
            found.append(Row(section, key.strip("`"), kind, default, meaning))
    return found


FOLDER = Path(infold.declare.__file__).parent / "schemas"
ROWS = {(row.section, row.key): row for row in rows()}
_MODEL = (*models.KEYS, "forward_only")
"""Keys of a model; of a table that is built cell by cell `forward_only` is in `incremental`."""


def _schema_of(section: str, key: str, own: Schema | None = None) -> Schema:
    """A key with its meaning; ``own`` where the page calls it a mapping, or more than a type."""
    row = ROWS[section, key]
    found: Schema = {"description": _plain(row.meaning), **(own or of_type(row.type))}
    if own is None and re.fullmatch(r"`[^`]+`", row.default) and row.key != "partition_column":
        default = yaml.safe_load(row.default.strip("`"))
        found["default"] = default if isinstance(default, bool) else str(default)
    return found


def _plain(meaning: str) -> str:
    """A cell of a table without its links, and without brackets that have a link alone."""
    meaning = re.sub(r" \(\[[^]]+\]\([^)]*\)\)", "", meaning)
    return re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", meaning)


def _keys(section: str, known: Iterable[str], inside: str = "", **own: Schema) -> dict[str, Any]:
    """The keys of a section of the page; those ``inside`` of another key have its name before."""
    return {
        key: _schema_of(section, f"{inside}.{key}" if inside else key, own.get(key))
        for key in known
    }


# -- models


def _sessions() -> Schema:
    campaign = {"anyOf": [TEXTS, mapping(_keys("campaign", models.CAMPAIGN))]}
    without = {"anyOf": [{"const": "set_aside"}, mapping({"gap": LENGTH})]}
    cuts = mapping(_keys("cuts", models.CUTS, campaign=campaign))
    return mapping(_keys("sessions", models.SESSION_KEYS, without_identifier=without, cuts=cuts))


def _incremental() -> Schema:
    overrides = mapping(_keys("safety_overrides", Override))
    bounds = mapping_of(mapping(_keys("bounds", models.BOUND)))
    return mapping(
        _keys("incremental", models.INCREMENTAL, safety_overrides=overrides, bounds=bounds)
    )


def _model_keys(known: Iterable[str]) -> dict[str, Any]:
    return _keys(
        "Model keys",
        known,
        audits=audits_schema(),
        timeseries=mapping(_keys("timeseries", models.TIMESERIES)),
        incremental=_incremental(),
        sessions=_sessions(),
        scd_type_2=mapping(_keys("scd_type_2", models.VERSION_KEYS)),
    )


def _model() -> Schema:
    """
    The keys of one model.

    None is required: front matter, `models` and `defaults` of infold.yml are read together.
    """
    kinds = [
        only_where("materialization", kind, meant) for kind, meant in models._MEANT_FOR.items()
    ]
    return mapping(_model_keys(_MODEL), allOf=kinds)


# -- infold.yml


def _source() -> Schema:
    column = mapping(
        {"type": TEXT, "optional": FLAG, "default": {}},
        required=["type"],
        dependencies={"default": ["optional"]},
    )
    columns = mapping_of({"anyOf": [TEXT, column]}, minProperties=1)
    folders = mapping_of(TEXT, minProperties=1)
    more = {"columns": columns, "partition_columns": folders, "catalog": _catalog_of_source()}
    return mapping(
        _keys("Source keys", sources.KEYS, "", **more),
        oneOf=[{"required": ["path"]}, {"required": ["table"]}],
        **{
            "if": {
                "required": ["path"],
                "not": {"properties": {"format": {"const": Format.DELTA}}, "required": ["format"]},
            },
            "then": {"required": ["columns"]},
        },
        dependencies={
            "received_column": ["event_time_column"],
            "future_tolerance": ["received_column"],
            "catalog": ["table"],
            "url": ["table", "columns"],
            "key": ["url", "corrections"],
            "corrections": ["key"],
            "listing_window": ["full_listing"],
            **{key: ["path"] for key in ("settle", "file_time_column", "on_new_columns")},
            **{key: ["path"] for key in ("on_unreadable", "full_listing", "partition_columns")},
        },
    )


def _storage_options() -> Schema:
    options = _keys("Target keys", OPTION_KEYS, "storage_options")
    one, other, token = AWS_KEY
    parts = {part: [more for more in APPLICATION if more != part] for part in APPLICATION}
    needs = {"dependencies": {one: [other], other: [one], token: [one], **parts}}
    name = catalogs.BUCKETS
    buckets = _keys(
        "Target keys", (name,), "storage_options", **{name: mapping_of(mapping(options, **needs))}
    )
    return mapping({**options, **buckets}, **needs)


def _catalog_of_source() -> Schema:
    """The file of a catalog, or where one is; the name of the table has its namespace."""
    found = _catalog()
    del found["properties"]["namespace"]
    return {"anyOf": [TEXT, {**found, "required": ["type", "uri"]}]}


def _catalog() -> Schema:
    known = {key: None for keys in catalogs.KEYS.values() for key in keys}
    needs_uri = {"required": ["uri"]}
    kinds = [
        only_where(
            "type", kind, ("type", *keys), **({} if kind is CatalogType.SQLITE else needs_uri)
        )
        for kind, keys in catalogs.KEYS.items()
    ]
    keys = _keys("Target keys", ("type", *known), "catalog")
    return mapping(keys, required=["type"], allOf=kinds)


def _engine() -> Schema:
    section = mapping(
        _keys("Target keys", targets.ENGINE_KEYS, "engine"),
        anyOf=[
            *({"required": [key]} for key in targets.PLACES),
            {"propertyNames": {"enum": ["idle", "start"]}, "minProperties": 1},
        ],
    )
    return {"anyOf": [{"const": "local"}, section]}


def _hooks() -> Schema:
    """One that is told of runs, or a list: by a command, or by a webhook."""
    types = dict.fromkeys(targets.HOOK_KEYS, TEXT) | {
        "body": {},
        "headers": mapping_of(SCALAR),
        "timeout": LENGTH,
    }
    one = mapping(
        types,
        oneOf=[{"required": ["command"]}, {"required": ["webhook"]}],
        dependencies={key: ["webhook"] for key in targets.OF_WEBHOOKS},
    )
    return {"anyOf": [one, {"type": "array", "items": one}]}


def _lineage() -> Schema:
    """Events to a URL, or into a file."""
    types = dict.fromkeys(targets.LINEAGE_KEYS, TEXT) | {
        "headers": mapping_of(SCALAR),
        "timeout": LENGTH,
    }
    return mapping(types, oneOf=[{"required": ["url"]}, {"required": ["file"]}])


def _target() -> Schema:
    refused = [*targets.MASTERS, *targets.REMOTES]
    settings = {"pattern": r"^spark\.", "not": {"enum": refused}}
    spark = mapping_of(SCALAR, propertyNames=settings)
    own = {
        "catalog": _catalog(),
        "storage_options": _storage_options(),
        "engine": _engine(),
        "lineage": _lineage(),
        "spark": spark,
        **{str(when): _hooks() for when in When},
    }
    return mapping(_keys("Target keys", targets.KEYS, "", **own))


def _seed() -> Schema:
    return mapping(_keys("Seed keys", seeds.KEYS, columns=mapping_of(TEXT)))


def _project() -> Schema:
    named = {"propertyNames": {"pattern": NAME_PATTERN}}
    keys = _keys(
        "Project keys",
        project.KEYS,
        sources=mapping_of(
            {"$ref": "#/definitions/source"}, propertyNames={"pattern": GROUP_NAME_PATTERN}
        ),
        seeds=mapping_of({"$ref": "#/definitions/seed"}, **named),
        erasures=mapping_of(mapping_of(TEXT), **named),
        erasure_requests=mapping_of(
            mapping_of(mapping(_keys("Request keys", erasures.REQUEST_KEYS), required=["key"]))
        ),
        targets=mapping_of({"$ref": "#/definitions/target"}, **named),
        models=mapping_of({"$ref": "#/definitions/model"}, **named),
        defaults=mapping(_model_keys(models.KEYS)),
    )
    keys["name"]["pattern"] = NAME_PATTERN
    return mapping(keys, required=["name"])


def schemas() -> dict[str, Schema]:
    """The schemas, each by the name of its file."""
    begun: Schema = {"$schema": "http://json-schema.org/draft-07/schema#"}
    sections = {"model": _model(), "source": _source(), "seed": _seed(), "target": _target()}
    whole = {**begun, "title": "infold.yml, a project of infold", **_project()}
    return {
        "project": {**whole, "definitions": sections},
        "model": {**begun, "title": "The front matter of a model of infold", **_model()},
    }


def text_of(schema: Schema) -> str:
    """A schema as its file has it."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "pattern": r"\S"}
SCALAR: Schema = {"type": ["string", "number", "boolean"]}
NAME_PATTERN = "^" + NAME.pattern.replace(r"\Z", "$")
GROUP_NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9_]*\.[A-Za-z][A-Za-z0-9_]*$"


def _any_case(word: str) -> str:
    """A pattern for a word in small and large letters: JSON Schema has no flag for it."""
    return "".join(f"[{letter}{letter.upper()}]" for letter in word)


_UNIT = "|".join(map(_any_case, interval._UNITS))
LENGTH: Schema = {
    "type": "string",
    "pattern": rf"^\s*(\d+\s*({_UNIT})[sS]?\s*)+$",
    "patternErrorMessage": "A length of time with its unit: 30 minutes, 1 hour 30 minutes, 2 days.",
}
FLAG: Schema = {
    "anyOf": [
        {"type": "boolean"},
        # What YAML 1.1, which infold reads, takes for a flag, and YAML 1.2 for a text.
        {"type": "string", "pattern": "^([Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF)$"},
    ]
}
INSTANT: Schema = {
    "type": "string",
    "pattern": r"^\s*\d{4}-?(\d{2}-?\d{2}|W\d{2}(-?\d)?)(\D.*)?$",
    "patternErrorMessage": "A date or a time: 2024-01-31, 2024-01-31T09:00.",
}
TEXTS: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}

_CALLED: tuple[tuple[Schema, tuple[str, ...]], ...] = (
    (
        TEXT,
        (
            *("text", "column", "name", "name of a target", "folder or URL", "URL", "file", "glob"),
            *("secret", "`ID:SECRET`", "event SQL", "a call", "zone", "cron expression"),
        ),
    ),
    (
        TEXTS,
        ("list", "list of columns", "list of `column` or `column desc`", "event SQL, or a list"),
    ),
    (FLAG, ("flag",)),
    (LENGTH, ("length", "duration")),
    (INSTANT, ("instant",)),
)
"""The types, each with what the page calls it."""

_BY_WORDS: dict[str, Schema] = {
    "percent": {"type": "string", "pattern": r"^\d+(\.\d+)?\s*%$"},
    "one character": {"type": "string", "minLength": 1, "maxLength": 1},
    "number": {"type": "integer", "minimum": 1},
    "duration, `never`": {"anyOf": [{"const": "never"}, LENGTH]},
    "duration, `at_once`, `never`": {"anyOf": [{"enum": ["at_once", "never"]}, LENGTH]},
    "`none`, `reread 3 days` (any length)": {
        "type": "string",
        "pattern": LENGTH["pattern"]
        .replace(r"^\s*", r"^\s*(none|reread\s+")
        .replace(")+$", ")+)\\s*$"),
    },
    "mapping of new to earlier names": {"type": "object", "additionalProperties": TEXT},
    **{words: schema for schema, all_words in _CALLED for words in all_words},
}


def of_type(words: str) -> Schema:
    """The schema of what the page calls so."""
    if words in _BY_WORDS:
        return dict(_BY_WORDS[words])
    values = re.findall(r"`([^`]+)`", words)
    if words == ", ".join(f"`{value}`" for value in values):
        return {"enum": values}
    if words.endswith(", or a length"):
        return {"anyOf": [{"enum": values}, LENGTH]}
    if words.endswith(", or a Spark pattern"):
        return {"anyOf": [{"enum": values}, TEXT]}
    raise ValueError(f"{words!r} has no schema: add it to _BY_WORDS of {__name__}")


def mapping(properties: Schema, **more: Any) -> Schema:
    """A mapping with these keys and no others."""
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def mapping_of(values: Schema, **more: Any) -> Schema:
    """A mapping of names that its author chooses."""
    return {"type": "object", "additionalProperties": values, **more}


def only_where(key: str, value: str, known: Iterable[str], **more: Any) -> Schema:
    """Which keys there may be where a key beside them has a value."""
    then = {"propertyNames": {"enum": list(known)}, **more}
    return {"if": {"properties": {key: {"const": value}}, "required": [key]}, "then": then}


# -- audits

_WITHIN: Schema = {"enum": list(Within)}
_WHOLE: Schema = {"type": "integer", "minimum": 0}
_ARGUMENTS: dict[str, Schema] = {
    "not_null": TEXTS,
    "unique": {
        "anyOf": [TEXTS, mapping({"columns": TEXTS, "within": _WITHIN}, required=["columns"])]
    },
    "accepted_values": mapping(
        {"column": TEXT, "values": {"type": "array", "minItems": 1, "items": SCALAR}},
        required=["column", "values"],
    ),
    "accepted_range": mapping(
        {"column": TEXT, "min": SCALAR, "max": SCALAR, "inclusive": FLAG},
        required=["column"],
        anyOf=[{"required": ["min"]}, {"required": ["max"]}],
    ),
    "matches": mapping({"column": TEXT, "pattern": TEXT}, required=["column", "pattern"]),
    "expression": TEXT,
    "relationship": mapping(
        {"column": TEXTS, "columns": TEXTS, "to": TEXT, "to_column": TEXTS, "to_columns": TEXTS},
        required=["to"],
        anyOf=[{"required": ["column"]}, {"required": ["columns"]}],
    ),
    "row_count": mapping(
        {"min": _WHOLE, "max": _WHOLE, "within": _WITHIN},
        anyOf=[{"required": ["min"]}, {"required": ["max"]}],
    ),
    "freshness": mapping({"column": TEXT, "max_age": LENGTH}, required=["max_age"]),
    "no_gaps": {"anyOf": [{"type": "null"}, FLAG, {"type": "object", "maxProperties": 0}]},
}


def audits_schema() -> Schema:
    """The list of a model's audits."""
    beside: Schema = {"name": TEXT, "severity": {"enum": list(Severity)}, "where": TEXT}
    assert set(beside) == set(audits.BESIDE), "a key beside audits has no schema"
    kinds = {kind: _ARGUMENTS[kind] for kind in audits.KINDS}
    one = mapping({**kinds, **beside}, oneOf=[{"required": [kind]} for kind in kinds])
    return {"type": "array", "items": {"anyOf": [{"const": "no_gaps"}, one]}}


if __name__ == "__main__":
    for name, schema in schemas().items():
        (FOLDER / f"{name}.json").write_text(text_of(schema), encoding="utf-8")
