"""
Every example of the pages is run by a test.

Examples of a whole page that is followed step by step have tests of their own. All other SQL and
YAML is put into one project here, and read as `check` does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.declare.shop import project, write
from tests.docs.pages import DOCS, FENCE, ROOT, code, files_of, write_project

from infold.cli import cli
from infold.core.interval import DAY
from infold.declare import check

RUN = ("sql", "yaml", "python", "sh", "cron")
"""Languages of what a reader copies; `text` is what programs print."""

ELSEWHERE = ("docs/ui.md", "docs/errors", "docs/how-to/")
"""Pages that other tests do not name one by one: they look at all of a folder, or at the page."""

PROJECT = """
name: shop
sources:
  raw.events:
    path: events/*.json
    event_time_column: event_ts
    columns: {event_id: string, user_id: string, event_ts: timestamp, url: string, currency: string, amount: "decimal(18,2)"}
  raw.taps:
    path: taps/*.json
    event_time_column: tapped_at
    columns: {tap_id: string, user_id: string, tapped_at: timestamp, screen: string, currency: string, amount: "decimal(18,2)"}
  raw.orders:
    path: orders/*.json
    event_time_column: at
    columns: {order_id: string, user_id: string, at: timestamp, country: string, currency: string, amount: "decimal(18,2)"}
  raw.pages:
    path: pages/*.json
    event_time_column: derived_tstamp
    columns: {event_id: string, client_session_id: string, domain_sessionid: string, domain_userid: string, derived_tstamp: timestamp, event_name: string, page_url: string}
  raw.rates:
    path: rates.csv
    columns: {currency: string, day: date, rate: "decimal(18,6)"}
  raw.countries:
    path: countries.csv
    columns: {code: string}
"""  # noqa: E501


def events(source: str, key: str, time: str) -> str:
    """A model that ingests a source."""
    series = f"timeseries: {{event_time_column: {time}}}"
    front = f"---\nmaterialization: events\nunique_key: {key}\n{series}\n---\n"
    return f"{front}SELECT * FROM {source}"


VISITS = "---\nmaterialization: sessions\nsessions: {user: user_id, gap: 30 minutes}\n---\n"
MODELS: Mapping[str, str] = {
    "events": events("raw.events", "event_id", "event_ts"),
    "web": events("raw.events", "event_id", "event_ts"),
    "app": events("raw.taps", "tap_id", "tapped_at"),
    "orders": events("raw.orders", "order_id", "at"),
    "pages": events("raw.pages", "event_id", "derived_tstamp"),
    "users": "---\nmaterialization: table\n---\n"
    "SELECT user_id, max(currency) AS tier FROM orders GROUP BY user_id",
    "sessions": VISITS + "SELECT count(*) AS events, sum(amount) AS revenue, "
    "last(url) AS exit_url FROM events",
}

BY_DAY = """---
materialization: table
timeseries: {event_time_column: day}
incremental: {}
---
"""


def files(models: Mapping[str, str], declared: str = PROJECT) -> dict[str, str]:
    """The project with these models."""
    return {
        "infold.yml": declared,
        **{f"models/{name}.sql": text for name, text in {**MODELS, **models}.items()},
    }


def accepted(models: Mapping[str, str], declared: str = PROJECT) -> None:
    """Assert that `check` has nothing against a project with these models."""
    project(files(models, declared))


def test_every_page_with_examples_has_a_test() -> None:
    """Every page with examples is named by a test: a page with its first example fails here."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    named = {name for text in texts for name in re.findall(r'"([\w/-]+\.md)"', text)}
    unnamed = [
        page.relative_to(ROOT).as_posix()
        for page in (ROOT / "README.md", *DOCS.rglob("*.md"))
        if any(name in RUN for name, _ in FENCE.findall(page.read_text(encoding="utf-8")))
        and not any(page.as_posix().endswith(f"/{name}") for name in named)
    ]

    assert [page for page in unnamed if not page.startswith(ELSEWHERE)] == []


def test_tables_as_sources() -> None:
    """`check` accepts the declared tables, and knows in what format each is."""
    (sources,) = code(DOCS / "table-sources.md", "yaml")
    model = events("raw.orders", "order_id", "ordered_at")
    found = project({"infold.yml": f"name: shop\n{sources}", "models/orders.sql": model})

    formats = {name: one.format.value for name, one in found.sources.items()}
    assert formats == {"raw.orders": "iceberg", "raw.returns": "delta", "raw.refunds": "delta"}


def test_a_target_in_delta_lake() -> None:
    """`check` accepts the declared targets, whose tables are Delta's."""
    for target in code(DOCS / "delta.md", "yaml"):
        accepted({}, PROJECT + target)
        assert "storage: delta" in target


PLANS = """---
materialization: scd_type_2
unique_key: [account_id]
scd_type_2: {updated_at: at}
---
SELECT user_id AS account_id, country AS plan, at FROM orders"""
CLICKS = events("raw.events", "event_id", "event_ts")
LOOKUPS = "concepts/lookups.md"
BOUNDED = "SELECT cast(event_ts AS date) AS day, count(*) AS n FROM clicks GROUP BY 1"
ROWS = "SELECT event_id, event_ts, amount AS revision FROM raw.events"
SHOWN: list[tuple[str, str, int, str, Mapping[str, str]]] = [
    # a page, its language and example; the model that it becomes or belongs to; those beside it
    ("../README.md", "sql", 0, "%s", {}),
    ("concepts/cumulative-aggregates.md", "sql", 0, "%s", {}),
    (LOOKUPS, "sql", 2, "%s", {}),
    ("coming-from-snowplow.md", "sql", 1, "%s", {}),
    (LOOKUPS, "sql", 0, BY_DAY + "%s", {}),
    (LOOKUPS, "sql", 1, BY_DAY + "%s", {"plans": PLANS}),
    ("errors/events-and-sessions.md", "sql", 0, CLICKS.partition("SELECT")[0] + "%s", {}),
    ("concepts/retention.md", "sql", 0, "%s", {"clicks": CLICKS}),
    ("concepts/events.md", "yaml", 0, f"---\n%s---\n{ROWS}", {}),
    ("concepts/backfills.md", "yaml", 0, "---\n%s---\nSELECT count(*) AS n FROM events", {}),
    ("reference/keys.md", "yaml", 0,
     BY_DAY.replace("incremental: {}\n", "%s") + BOUNDED, {"clicks": CLICKS}),
]  # fmt: skip


@pytest.mark.parametrize(("page", "language", "number", "model", "beside"), SHOWN)
def test_check_accepts_a_model(
    page: str, language: str, number: int, model: str, beside: Mapping[str, str]
) -> None:
    """`check` accepts what a page shows of a model, with the rest of it."""
    text = code(DOCS / page, language)[number].replace("o.account_id", "o.user_id")

    accepted({**beside, "example": model % text})


def test_check_accepts_rows_that_are_kept_for_a_time() -> None:
    """A source with a length, and a table that keeps its cells for longer."""
    [sources] = code(DOCS / "concepts/retention.md", "yaml")
    [daily] = code(DOCS / "concepts/retention.md", "sql")
    clicks = CLICKS.replace("raw.events", "raw.clicks")

    found = project(
        {
            "infold.yml": f"name: shop\n{sources}",
            "models/clicks.sql": clicks,
            "models/daily.sql": daily,
        }
    )
    lengths = (None, 500 * DAY, 30 * DAY)
    targets = [replace(found.target, retain=length) for length in lengths]
    kept = [replace(found, target=target).retain_of(found["clicks"]) for target in targets]
    assert kept == [400 * DAY, 400 * DAY, 30 * DAY]


def test_check_accepts_sessions() -> None:
    """Over Snowplow's events, and over views with a lookup and with UNION ALL."""
    snowplow = code(DOCS / "coming-from-snowplow.md", "sql")[0]
    priced, union = code(DOCS / "concepts/views.md", "sql")
    visits = VISITS + "SELECT sum(price) AS price FROM priced"

    accepted({"example": snowplow.replace("FROM events", "FROM pages")})
    view = "---\nmaterialization: view\n---\n"
    accepted({"all_events": view + union, "priced": priced, "visits": visits})


@pytest.mark.parametrize("page", ["annotated-project.md", "cookbook.md", "concepts/versions.md"])
def test_check_accepts_a_whole_project(page: str, tmp_path: Path) -> None:
    """The project that a page shows, with its comments, passes `check` without a note."""
    folder = write_project(DOCS / page, tmp_path)

    done = CliRunner().invoke(cli, ["-C", str(folder), "check"])

    assert (done.exit_code, "no findings" in done.output) == (0, True), done.output
    assert len(list((folder / "models").iterdir())) > 1


def test_a_model_of_the_page_on_versions_reads_them_by_time(tmp_path: Path) -> None:
    """The last model of the page joins versions as of a time."""
    found = project(files_of(DOCS / "concepts" / "versions.md"))

    [match] = found["clicks_with_plan"].matches
    assert match.validity is not None


@pytest.mark.parametrize(
    "page",
    [
        "databases.md",
        "reference/source-files.md",
        "decisions/0027-set-aside-is-read-as-a-source.md",
    ],
)
def test_check_accepts_sources(page: str) -> None:
    """`check` accepts the sources that a page shows, next to others in one project."""
    examples = code(DOCS / page, "yaml")
    assert examples
    for example in examples:
        declared = yaml.safe_load(PROJECT)
        declared["sources"] |= yaml.safe_load(example)["sources"]

        accepted({}, yaml.safe_dump(declared))


def test_check_accepts_the_functions(tmp_path: Path) -> None:
    """`check` accepts the functions of the reference, and a view that calls them."""
    page = "reference/functions.md"
    [net], [of_page, checkout] = code(DOCS / page, "sql"), code(DOCS / page, "python")
    [front] = code(DOCS / page, "yaml")
    sessions = MODELS["sessions"]
    own = sessions.index("sessions:")
    ruled = sessions[:own] + front + sessions[sessions.index("---", own) :]
    view = "---\nmaterialization: view\n---\nSELECT net(amount, 0.19) AS net, page(url) AS page "
    functions = {
        "functions/net.sql": net,
        "functions/page.py": of_page,
        "functions/checkout.py": checkout,
    }
    root = write(
        tmp_path, {**files({"visits": ruled, "calls": f"{view} FROM events"}), **functions}
    )

    assert [str(error) for error in check(root)] == []


def test_check_accepts_the_audits() -> None:
    """`check` accepts the audits of the reference, in front matter and in a file."""
    page = "reference/audits.md"
    [front], [file] = code(DOCS / page, "yaml"), code(DOCS / page, "sql")
    orders = MODELS["orders"].replace("unique_key", f"{front}unique_key")

    found = project({**files({"orders": orders}), "audits/orders_without_visit.sql": file})

    assert [one.name for one in found["orders"].model.audits] == [
        "not_null(order_id, user_id)",
        "amounts in Germany",
        "no_gaps",
        "orders_without_visit",
    ]
