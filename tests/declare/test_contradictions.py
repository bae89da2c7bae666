# ruff: noqa: E501 (one case is one row of a table)
"""
Declarations that contradict each other, or that would have no effect, are refused.

So are targets whose tables would be in one place by two names of it, or guarded in one only.

A case is a claim, the files of a project, and what is wrong with them: ``slug file:line `text under
the caret` (the fact that helps)``, as in ``test_mistakes``. Beside what is refused stands what looks
like it and means something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.declare.shop import INFOLD, SHOP, read, spoilt
from tests.declare.test_mistakes import shown

from infold.core.storages import Storage
from infold.core.target import Target
from infold.declare.project import shared_tables
from infold.messages.errors import Spot

Case = tuple[str, Mapping[str, str], Sequence[str]]

YML, C, S, D = "infold.yml", "models/clicks.sql", "models/sessions.sql", "models/daily.sql"

PYTHON = """from infold import model

@model(materialization="table", columns={"a": "date"})
def users(clicks):
    return clicks
"""


def models(text: str) -> dict[str, str]:
    """The project with `models` in infold.yml."""
    return {**SHOP, YML: f"{INFOLD}models: {text}\n"}


OF_TWO_PLACES: list[Case] = [
    ("front matter and `models` say one thing each", models("{daily: {incremental: {start: 2024-01-01}, tags: [a]}}"), []),
    ("both say it", models("{daily: {timeseries: {granularity: week}}}"), [
        "duplicate-key infold.yml:21 `granularity` (models/daily.sql:3)",
    ]),
    ("both say it, and it would be no value", models("{daily: {timeseries: {granularity: 7}, materialization: tabel}}"), [
        "duplicate-key infold.yml:21 `granularity` (models/daily.sql:3)",
        "duplicate-key infold.yml:21 `materialization` (models/daily.sql:2)",
    ]),
    ("one is a mapping, and the other is not", models("{daily: {incremental: true}}"), [
        "duplicate-key infold.yml:21 `incremental` (models/daily.sql:4)",
    ]),
    ("a model in Python", {**models("{users: {columns: {a: bigint}, tags: [a]}}"), "models/users.py": PYTHON}, [
        "duplicate-key infold.yml:21 `a` (models/users.py:3)",
    ]),
    ("inputs of a model in Python that infold.yml names", {**models("{users: {inputs: {clikcs: {}}}}"), "models/users.py": PYTHON}, [
        "bad-model-function infold.yml:21 `clikcs` (clicks)",
        "bad-model-function models/users.py:4 `clicks` (clikcs)",
    ]),
]  # fmt: skip


def versions(rules: str) -> dict[str, str]:
    """The project with a table of versions by user."""
    front = f"materialization: scd_type_2\nunique_key: [user_id]\nscd_type_2: {{updated_at: event_ts, {rules}}}"
    return {
        **SHOP,
        "models/v.sql": f"---\n{front}\n---\nSELECT user_id, event_ts, url FROM clicks\n",
    }


VERSIONS: list[Case] = [
    ("all columns", versions("columns: '*'"), []),
    ("a key beside a column", versions("columns: [user_id, url]"), []),
    ("a column beside all", versions("columns: ['*', url]"), ["needless-key models/v.sql:4 `url`"]),
    ("no columns", versions("columns: []"), ["wrong-type models/v.sql:4 `[]`"]),
    ("keys alone", versions("columns: [USER_ID, event_ts]"), ["needless-key models/v.sql:4 `columns`"]),
    ("the stretches in which a key is there", versions("columns: user_id, invalidate_hard_deletes: true"), []),
]  # fmt: skip


def cuts(text: str) -> dict[str, str]:
    """The project with sessions that `cuts` divides."""
    return spoilt(S, "gap: 30 minutes", f"gap: 30 minutes, cuts: {text}")


CUTS: list[Case] = [
    ("a campaign by a column", cuts("{campaign: url}"), []),
    ("a campaign by none", cuts("{campaign: []}"), ["wrong-type models/sessions.sql:3 `[]`"]),
    ("a campaign by none, with more", cuts("{campaign: {columns: [], nulls: change}}"), [
        "wrong-type models/sessions.sql:3 `[]`",
    ]),
]  # fmt: skip


def preferred(text: str) -> dict[str, str]:
    """The project with events of which these copies are kept."""
    return spoilt(C, "unique_key: [event_id]", f"unique_key: [event_id]\n{text}")


COPIES: list[Case] = [
    ("what copies differ in decides", preferred("prefer: [amount desc, '`url`']"), []),
    ("by the event time, which copies have together", preferred("prefer: [amount, '`event_ts` desc']"), [
        "needless-key models/clicks.sql:4 `'`event_ts` desc'`",
    ]),
    ("by the event time, where copies have others", preferred("prefer: event_ts desc\ndeduplicate: everywhere"), []),
    ("by the key", preferred("prefer: EVENT_ID"), ["needless-key models/clicks.sql:4 `EVENT_ID`"]),
    ("by the key at any time", preferred("prefer: [event_id]\ndeduplicate: everywhere"), [
        "needless-key models/clicks.sql:4 `event_id`",
    ]),
    ("by default", {**SHOP, YML: INFOLD + "defaults: {prefer: [event_ts desc]}\n"}, []),
]  # fmt: skip

OFF = "incremental: {enabled: false, batch_size: 2, cron: '@daily'"
WHOLE: list[Case] = [
    ("cells are switched off", spoilt(D, "incremental: {}", OFF + "}"), []),
    ("and there are none to keep", spoilt(D, "incremental: {}", OFF + ", forward_only: true}"), [
        "needless-key models/daily.sql:4 `forward_only`",
    ]),
    ("nor are they kept", spoilt(D, "incremental: {}", OFF + ", forward_only: false}"), []),
    ("the default of other models", {
        **spoilt(D, "incremental: {}", OFF + "}"), YML: INFOLD + "defaults: {incremental: {forward_only: true}}\n",
    }, []),
]  # fmt: skip


def users(more: str, kind: str = "table") -> dict[str, str]:
    """The project with a model in Python that says more."""
    old = 'materialization="table", '
    text = PYTHON.replace(old, f'materialization="{kind}", {more}, ', 1)
    return {**SHOP, "models/users.py": text}


NEAR = 'inputs={"clicks": {"before": "1 day", "after": "0 days"}}'
CELLS = 'timeseries={"event_time_column": "event_ts", "partition_column": "a"}'
IN_PYTHON: list[Case] = [
    ("rows near a table without cells", users(NEAR), [
        'needless-key models/users.py:3 `"before"`', 'needless-key models/users.py:3 `"after"`',
    ]),
    ("rows near a view", users('inputs={"clicks": {"after": "1 day"}}', "view"), [
        'needless-key models/users.py:3 `"after"`',
    ]),
    ("cells are switched off", users(f'{NEAR}, {CELLS}, incremental={{"enabled": False}}'), []),
    ("cells by default", {
        **users(f"{NEAR}, {CELLS}"), YML: INFOLD + "defaults: {incremental: {}}\n",
    }, []),
    ("a check that a function does not have", users('incremental={"enabled": False, "safety_overrides": {"allow_limit": True, "allow_nondeterministic": True}}'), [
        'needless-key models/users.py:3 `"allow_limit"`',
    ]),
    ("a check that models in SQL have", {
        **users(f'{CELLS}, incremental={{"enabled": False}}'), YML: INFOLD + "defaults: {incremental: {safety_overrides: {allow_limit: true}}}\n",
    }, []),
]  # fmt: skip


def target(text: str) -> dict[str, str]:
    """The project with a target."""
    return spoilt(YML, "warehouse: warehouse", text)


def in_store(engine: str, *folders: str) -> dict[str, str]:
    """The project with a target in an object store, and its sources but for some."""
    text = target(
        f"warehouse: 's3://lake/shop', catalog: {{type: rest, uri: 'https://c'}}, engine: {engine}"
    )[YML]
    for path in ("landing/clicks/*.json", "countries.csv"):
        text = text.replace(path, path if path in folders else f"s3://lake/{path}")
    return {**SHOP, YML: text}


ENGINES: list[Case] = [
    ("a cluster", target("engine: {master: 'spark://a:7077', shared_disk: true, executor_wait: 1 hour}"), []),
    ("a cluster whose Spark would stay", target("engine: {master: yarn, shared_disk: true, idle: 1 hour}"), [
        "needless-key infold.yml:20 `idle`",
    ]),
    ("a server whose Spark would stay", target("engine: {remote: 'sc://a', shared_disk: true, idle: 1 hour}"), [
        "needless-key infold.yml:20 `idle`",
    ]),
    ("this machine", target("engine: {master: 'local[2]', idle: 1 hour}"), []),
    ("a cluster whose Spark would start early", target("engine: {master: yarn, shared_disk: true, start: early}"), [
        "needless-key infold.yml:20 `start`",
    ]),
    ("when it starts, alone", target("engine: {start: when_needed, idle: 1 hour}"), []),
    ("a start that is none", target("engine: {start: soon}"), [
        "bad-value infold.yml:20 `soon` (early, when_needed, off)",
    ]),
    ("executors of this machine", target("engine: {master: 'local[2]', shared_disk: true, executor_wait: 1 hour}"), [
        "needless-key infold.yml:20 `shared_disk`", "needless-key infold.yml:20 `executor_wait`",
    ]),
    ("all in an object store", in_store("{master: 'spark://a:7077'}"), []),
    ("all but a source", in_store("{master: 'spark://a:7077'}", "countries.csv"), ["not-shared infold.yml:20 `'spark://a:7077'`"]),
    ("all but the warehouse", {
        **SHOP, YML: in_store("{submitted: true}")[YML].replace("'s3://lake/shop', catalog: {type: rest, uri: 'https://c'}", "warehouse"),
    }, ["not-shared infold.yml:20 `true`"]),
    ("a source in a catalog", {
        **SHOP, YML: in_store("{master: 'spark://a:7077'}")[YML].replace("path: s3://lake/countries.csv", "table: shop.countries"),
    }, ["not-shared infold.yml:20 `'spark://a:7077'`"]),
]  # fmt: skip


def countries(keys: str, columns: str = "day: date") -> dict[str, str]:
    """The project with a lookup that says more."""
    old = "path: countries.csv\n    columns: {code: string, country: string}"
    return spoilt(
        YML, old, f"path: 'in/{{date}}/*.csv'\n    {keys}\n    columns: {{code: string, {columns}}}"
    )


SOURCES: list[Case] = [
    ("new columns wait", countries("on_drift: evolve\n    on_new_columns: ignore"), []),
    ("and are errors", countries("on_drift: evolve\n    on_new_columns: error"), ["needless-key infold.yml:18 `on_drift`"]),
    ("and are set aside", countries("on_drift: evolve\n    on_new_columns: set_aside"), ["needless-key infold.yml:18 `on_drift`"]),
    ("some folders are listed", countries("full_listing: daily\n    listing_window: 2 days"), []),
    ("all folders are listed", countries("full_listing: always\n    listing_window: 2 days"), ["needless-key infold.yml:19 `listing_window`"]),
    ("dates are written one way", countries("timestamp_format: dd.MM.yyyy"), ["needless-key infold.yml:18 `timestamp_format`"]),
    ("the way they are written", countries("timestamp_format: iso"), []),
    ("the time of a file is not written", countries("timestamp_format: epoch_millis\n    file_time_column: seen"), [
        "needless-key infold.yml:18 `timestamp_format`",
    ]),
    ("a field called so is no timestamp", countries("timestamp_format: epoch_millis", "a: 'struct<timestamp: array<int>>'"), [
        "needless-key infold.yml:18 `timestamp_format`",
    ]),
    *((f"timestamps in {type_}", countries("timestamp_format: epoch_millis", f"a: '{type_}'"), []) for type_ in (
        "TIMESTAMP_NTZ", "array<timestamp>", "map<string, struct<b: int, c: timestamp>>", "struct<d: decimal(4,2), `e f` timestamp>",
    )),
    ("a table has types of its own", spoilt(YML, "path: countries.csv\n    columns: {code: string, country: string}", "table: shop.countries\n    timestamp_format: epoch_millis"), [
        "needless-key infold.yml:18 `timestamp_format`",
    ]),
    ("a column of no type", countries("timestamp_format: epoch_millis", "a: datetime"), ["bad-type infold.yml:19 `datetime` (timestamp)"]),
    ("events are received when they happen", spoilt(YML, "received_column: seen_at", "received_column: EVENT_TS"), [
        "needless-key infold.yml:8 `received_column`",
    ]),
]  # fmt: skip

REST = "catalog: {type: rest, uri: 'https://c'"
ACCESS = "scope: all, oauth2_server_uri: 'https://d'}"
REQUESTS: list[Case] = [
    ("events of lineage in a file", target("lineage: {file: a.jsonl, namespace: shop}"), []),
    ("sent nowhere", target("lineage: {file: a.jsonl, headers: {A: b}, timeout: 1 second}"), [
        "needless-key infold.yml:20 `headers`", "needless-key infold.yml:20 `timeout`",
    ]),
    ("a catalog with a credential", target(f"{REST}, credential: 'a:${{env:B}}', {ACCESS}"), []),
    ("with a token", target(f"{REST}, token: '${{env:B}}', {ACCESS}"), []),
    ("that lets in everybody", target(f"{REST}, {ACCESS}"), [
        "needless-key infold.yml:20 `scope`", "needless-key infold.yml:20 `oauth2_server_uri`",
    ]),
]  # fmt: skip

SEED = {"seeds/codes.csv": "code,Name\n1,a\n"}
RELATION = "audits: [{relationship: {%s, to: clicks}}]\ntimeseries"
NAMED_TWICE: list[Case] = [
    ("columns of a seed", {**SHOP, **SEED, YML: INFOLD + "seeds: {codes: {columns: {Code: int, name: string}}}\n"}, []),
    ("a column of a seed, twice", {**SHOP, **SEED, YML: INFOLD + "seeds: {codes: {columns: {Code: int, code: string}}}\n"}, [
        "duplicate-name infold.yml:21 `code` (Code)",
    ]),
    ("columns that refer", spoilt(C, "timeseries", RELATION % "columns: [user_id, url]"), []),
    ("and one that does", spoilt(C, "timeseries", RELATION % "column: user_id, columns: [url]"), [
        "needless-key models/clicks.sql:4 `columns`",
    ]),
    ("and one that is referred to", spoilt(C, "timeseries", RELATION % "column: user_id, to_columns: [url], to_column: url"), [
        "needless-key models/clicks.sql:4 `to_columns`",
    ]),
]  # fmt: skip


def renamed(text: str, file: str = D) -> dict[str, str]:
    """The project with columns that had other names."""
    return {**SHOP, file: SHOP[file].replace("---\n", f"---\nrenamed_from: {{{text}}}\n", 1)}


RENAMED: list[Case] = [
    ("columns that have other names now", renamed("revenue: Income, sessions: visits"), []),
    ("a name that is there still", renamed("revenue: SESSIONS"), ["bad-value models/daily.sql:2 `SESSIONS`"]),
    ("the same name", renamed("revenue: Revenue"), ["bad-value models/daily.sql:2 `Revenue`"]),
    ("one name of two", renamed("revenue: income, sessions: Income"), ["bad-value models/daily.sql:2 `Income`"]),
    ("columns change places", renamed("revenue: sessions, sessions: revenue"), [
        "bad-value models/daily.sql:2 `sessions`", "bad-value models/daily.sql:2 `revenue`",
    ]),
    ("what all sessions have", renamed("revenue: session_start", S), ["bad-value models/sessions.sql:2 `session_start`"]),
    ("a model in Python", users('renamed_from={"a": "b"}'), []),
    ("columns that it lacks, and has", users('renamed_from={"b": "c", "a": "A"}'), [
        'unknown-column models/users.py:3 `"c"` (a)', 'bad-value models/users.py:3 `"A"`',
    ]),
]  # fmt: skip

CASES = [
    *OF_TWO_PLACES, *VERSIONS, *CUTS, *COPIES, *WHOLE, *IN_PYTHON, *ENGINES, *SOURCES, *REQUESTS,
    *NAMED_TWICE, *RENAMED,
]  # fmt: skip


@pytest.mark.parametrize(("claim", "files", "expected"), CASES, ids=[claim for claim, *_ in CASES])
def test_what_has_no_effect_is_refused(
    claim: str, files: Mapping[str, str], expected: Sequence[str]
) -> None:
    """What contradicts something else, or means nothing where it is, is named with its place."""
    _, found = read(files)

    assert sorted(map(shown, found)) == sorted(expected), claim


def test_both_places_are_named() -> None:
    """A key of a model in two files is called by its full name."""
    _, [error] = read(models("{daily: {timeseries: {granularity: week}}}"))

    assert error.what == "'timeseries.granularity' is here twice"


def found(root: Path, *targets: Target) -> list[tuple[str, str]]:
    """What is wrong with targets: slug and first sentence."""
    named = {target.name: target for target in targets}
    spots = {name: Spot.of_line("infold.yml", 1, "") for name in named}
    return [(error.slug, error.what) for error in shared_tables("shop", root, named, spots)]


@pytest.mark.parametrize("written", ["w", "./w", "linked"])
def test_one_folder_by_two_names(tmp_path: Path, written: str) -> None:
    """A folder is known by a path that is written otherwise, and by a link. In two storages each
    would find folders of the other; a run of a target that is free would rebuild what another one
    protects.
    """
    (tmp_path / "w").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "w")
    dev, new = Target("dev", "w"), Target("new", written, storage=Storage.DELTA)
    prod = Target("prod", written, protected=True)

    assert [slug for slug, _ in found(tmp_path, dev, new)] == ["not-with-delta"]
    assert found(tmp_path, dev, prod) == [("catalog-same-tables", SAME + "only prod is protected")]


SAME = "targets dev and prod would have the same tables, and "


@pytest.mark.parametrize(
    ("other", "wrong"),
    [
        ("protected: true", "only prod is protected"),
        ("apply: manual", "`apply` is auto in dev and manual in prod"),
        ("warehouse: ./warehouse, ledger: 'sqlite:///prod.db'", "each a ledger of its own"),
        ("warehouse: tables, protected: true", ""),
        ("ledger: 'postgresql://infold@db/ledgers', protected: true", ""),
        ("engine: {master: 'local[2]'}, spark: {spark.driver.memory: 4g}", ""),
    ],
)
@pytest.mark.parametrize("storage", ["iceberg", "delta"])
def test_targets_with_one_warehouse(storage: str, other: str, wrong: str) -> None:
    """Two targets with the same tables and ledger may differ in what computes, not in what guards
    the tables; two ledger files are two ledgers, and two addresses may be one.
    """
    targets = f"  dev: {{storage: {storage}}}\n  prod: {{storage: {storage}, {other}}}\n"

    _, errors = read({**SHOP, "infold.yml": INFOLD.partition("  dev:")[0] + targets})

    assert [error.what for error in errors] == ([SAME + wrong] if wrong else [])
    assert all("`warehouse`" in error.todo for error in errors)
    assert [(error.at.line, error.at.text) for error in errors if error.at] == [
        (21, targets.splitlines()[1]) for _ in errors
    ]


@pytest.mark.parametrize(
    ("schemas", "one"), [(("a", "a"), True), (("", "infold_shop_dev"), True), (("", ""), False)]
)
def test_ledgers_on_a_server(tmp_path: Path, schemas: tuple[str, str], one: bool) -> None:
    """One address and one schema are one ledger; by default each target has a schema."""
    server = "postgresql://infold@db/ledgers"
    dev = Target("dev", ledger=server, ledger_schema=schemas[0])
    prod = Target("prod", ledger=server, ledger_schema=schemas[1], protected=True)

    assert bool(found(tmp_path, dev, prod)) is one


def test_a_named_target_for_development_protects_the_others() -> None:
    """What follows from `dev_target` counts as if it were written."""
    text = f"dev_target: dev\n{INFOLD}  prod: {{}}\n"

    _, [error] = read({**SHOP, "infold.yml": text})

    assert error.what == f"{SAME}only prod is protected"
