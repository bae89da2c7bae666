"""Events of lineage are what OpenLineage's own schemas allow, and say what a run did."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from tests.arrivals.dry import DryPlay
from tests.arrivals.shapes import SHAPES
from tests.arrivals.test_failing import failing, refusal
from tests.cli import sample
from tests.declare.shop import SHOP
from tests.declare.shop import project as shop_of
from tests.telling.receiver import receiver
from tests.telling.runs import end, project

from infold import api
from infold.analysis.definitions.column_sources import column_sources_of
from infold.core.audits import AuditResult, AuditState, JudgedAudit, Severity
from infold.core.interval import Ranges
from infold.core.plan import Action, Step
from infold.core.ports import Progress, SilentProgress
from infold.core.project import Project
from infold.core.record import Receipt
from infold.core.report import RunFailed, RunResult
from infold.messages import run_errors
from infold.telling.lineage import VERSIONS, Datasets, LineageEvents
from infold.telling.listener import tell
from infold.telling.log import JsonLog
from infold.telling.sender import Event

SCHEMAS = Path(__file__).parents[1] / "data" / "openlineage"
BY_ID = {
    schema["$id"]: schema
    for schema in (json.loads(path.read_text()) for path in sorted(SCHEMAS.glob("*.json")))
}
REGISTRY: Any = Registry().with_resources(  # of any schema
    (name, Resource.from_contents(schema)) for name, schema in BY_ID.items()
)
CLICKS = Step("clicks", Action.INGEST, Ranges(), ())
SESSIONS = Step("sessions", Action.FOLD, Ranges(), ())
DAILY = Step("daily", Action.RECOMPUTE, Ranges(), ())
FAILED = run_errors.step_failed(model="daily", what="[DIVIDE_BY_ZERO] Division", condition="")


def check(event: Event) -> None:
    """An event by the schema that it names, and each facet by its own."""
    judge(event["schemaURL"], event)
    datetime.fromisoformat(event["eventTime"])
    facets = [event["run"]["facets"], event["job"]["facets"]]
    for dataset in (*event["inputs"], *event["outputs"]):
        facets += [dataset.get(kind, {}) for kind in ("facets", "inputFacets", "outputFacets")]
    for found in facets:
        for key, one in found.items():
            schema = BY_ID[one["_schemaURL"].partition("#")[0]]
            # A facet has to be under the key that its schema gives it.
            assert list(schema["properties"]) == [key]
            judge(one["_schemaURL"], one)


def judge(url: str, value: Any) -> None:
    """A value by a part of a schema."""
    validator = Draft202012Validator(
        {"$ref": url},
        registry=REGISTRY,
        format_checker=Draft202012Validator.FORMAT_CHECKER,
    )
    assert [error.message for error in validator.iter_errors(value)] == []


@dataclass
class Kept:
    """A sender that keeps what it is given."""

    events: list[Any] = field(default_factory=list)
    closed: bool = False

    def send(self, event: Event) -> None:
        """Keep it, once it is what the schemas allow."""
        check(event)
        self.events.append(json.loads(json.dumps(event)))

    def close(self) -> Iterator[str]:
        """Nothing is left."""
        self.closed = True
        yield from ()


def judged(audit: str, state: AuditState, severity: Severity, **more: Any) -> JudgedAudit:
    """What the ledger knows of an audit."""
    at = 0 if audit == "earlier" else 10**16
    return JudgedAudit(AuditResult("clicks", audit, severity, state, **more), at)


AUDITS = (
    judged("not_null_user", AuditState.PASSED, Severity.ERROR),
    judged("few", AuditState.FAILED, Severity.WARN, bad=3, what="3 rows", rows=('{"a": "x"}',)),
    judged("earlier", AuditState.FAILED, Severity.ERROR),
    judged("later", AuditState.WAITING, Severity.ERROR),
    judged("stored", AuditState.FAILED, Severity.ERROR, stored=True),
)


def events(
    shop: Project, run: Callable[[Progress], RunResult], audits: tuple[JudgedAudit, ...] = ()
) -> list[Any]:
    """The events of a run."""
    kept = Kept()
    types = {"event_id": "string", "amount": "decimal(18,2)"}
    listener = LineageEvents(kept, "infold", lambda _: types, lambda: audits, column_sources_of)
    try:
        found = tell(shop, "run", SilentProgress(), [listener], run)
    except RunFailed as failed:
        found = failed.result
    assert [note for note in found.notes if "lineage" in note] == []
    return kept.events


DONE = RunResult("r", "done")


def good(shown: Progress) -> RunResult:
    """Two steps."""
    shown.step(1, 2, CLICKS)
    shown.done(CLICKS, Receipt(read=9, written=7))
    shown.step(2, 2, SESSIONS)
    shown.done(SESSIONS, Receipt(read=7, written=2))
    return DONE


def one(step: Step) -> Callable[[Progress], RunResult]:
    """A run of one step."""

    def run(shown: Progress) -> RunResult:
        shown.step(1, 1, step)
        shown.done(step, Receipt(written=1))
        return DONE

    return run


ENDS = ["START", "START", "COMPLETE", "START", "COMPLETE", "COMPLETE"]
"""The events of a good run."""


def test_a_run_and_its_steps(tmp_path: Path) -> None:
    """Each begins and ends once; steps name the run as their parent."""
    found = events(project(tmp_path, ""), good)

    assert [event["eventType"] for event in found] == ENDS
    names = [event["job"]["name"].removeprefix("shop.dev") for event in found]
    assert names == ["", ".clicks", ".clicks", ".sessions", ".sessions", ""]
    runs = [event["run"]["runId"] for event in found]
    assert (runs[0], runs[1], runs[3]) == (runs[5], runs[2], runs[4])
    assert len({str(uuid.UUID(run)) for run in runs}) == 3
    for step in found[1:5]:
        parent = step["run"]["facets"]["parent"]
        assert (parent["run"], parent["job"]["name"]) == ({"runId": runs[0]}, "shop.dev")


def test_what_a_step_reads_and_writes(tmp_path: Path) -> None:
    """Datasets by their places; schema, rows and columns with what they are made of."""
    clicks, sessions = (events(project(tmp_path, ""), good)[at] for at in (2, 4))

    [source], [table] = clicks["inputs"], clicks["outputs"]
    assert (source["namespace"], source["name"]) == ("file", str(tmp_path / "landing" / "clicks"))
    columns = [column["name"] for column in source["facets"]["schema"]["fields"]]
    assert columns[:2] == ["event_id", "user_id"]
    assert table["name"] == str(tmp_path / "warehouse" / "shop" / "clicks")
    assert table["outputFacets"]["outputStatistics"]["rowCount"] == 7
    types = {column["name"]: column["type"] for column in table["facets"]["schema"]["fields"]}
    assert types == {"event_id": "string", "amount": "decimal(18,2)"}
    lineage = table["facets"]["columnLineage"]
    [url] = lineage["fields"]["url"]["inputFields"]
    assert (url["namespace"], url["name"]) == ("file", source["name"])
    assert made_of([url]) == [("url", "DIRECT", "IDENTITY")]
    assert made_of(lineage["dataset"]) == [("user_id", "INDIRECT", "FILTER")]
    # The output of one step is the input of the next, by the same name.
    assert [read["name"] for read in sessions["inputs"]] == [table["name"]]
    revenue = sessions["outputs"][0]["facets"]["columnLineage"]["fields"]["revenue"]
    assert made_of(revenue["inputFields"]) == [("amount", "DIRECT", "AGGREGATION")]
    assert clicks["job"]["facets"]["sql"]["query"].startswith("SELECT event_id")


def made_of(fields: list[Any]) -> list[tuple[str, str, str]]:
    """Columns, and how each is used."""
    return [
        (each["field"], how["type"], how["subtype"])
        for each in fields
        for how in each["transformations"]
    ]


def test_a_failure_and_what_is_left(tmp_path: Path) -> None:
    """A step that fails says why; one whose end nobody saw is aborted."""

    def bad(shown: Progress) -> RunResult:
        for index, step in enumerate((CLICKS, SESSIONS, DAILY), 1):
            shown.step(index, 3, step)
        shown.step(3, 3, DAILY)
        shown.failed(DAILY, FAILED)
        shown.step(1, 3, CLICKS)
        shown.done(CLICKS, Receipt(written=1))
        raise RunFailed(sample.failed())

    found = events(project(tmp_path, ""), bad)

    assert [(one["eventType"], one["job"]["name"]) for one in found[4:]] == [
        ("FAIL", "shop.dev.daily"),
        ("COMPLETE", "shop.dev.clicks"),
        ("ABORT", "shop.dev.sessions"),
        ("FAIL", "shop.dev"),
    ]
    assert "DIVIDE_BY_ZERO" in found[4]["run"]["facets"]["errorMessage"]["message"]
    assert "errorMessage" in found[7]["run"]["facets"]
    assert "outputFacets" not in found[4]["outputs"][0]


def test_a_table_that_is_built_under_another_name(tmp_path: Path) -> None:
    """A changed table that will replace the one of its model: it is named, and no more is known."""
    found = events(project(tmp_path, ""), one(replace(CLICKS, model="clicks@apart")))

    assert [event["eventType"] for event in found] == ["START", "START", "COMPLETE", "COMPLETE"]
    assert found[2]["outputs"][0]["name"].startswith(str(tmp_path / "warehouse" / "shop"))


PYTHON = """from infold import model

@model(materialization="table", columns={"a": "string"})
def made(clicks):
    return clicks
"""


def test_a_model_in_python(tmp_path: Path) -> None:
    """What it reads is known; its columns are made by code, of which nothing is claimed."""
    shop = replace(shop_of({**SHOP, "models/made.py": PYTHON}), root=tmp_path)
    found = events(shop, one(Step("made", Action.BUILD, Ranges(), ())))[2]

    assert [read["name"] for read in found["inputs"]] == [str(tmp_path / "warehouse/shop/clicks")]
    assert "columnLineage" not in found["outputs"][0]["facets"]
    assert "sql" not in found["job"]["facets"]


def test_audits(tmp_path: Path) -> None:
    """What audits found of this run's rows, without the rows themselves."""
    found = events(project(tmp_path, ""), good, AUDITS)

    begun, ended = (event for event in found if event["job"]["name"] == "shop.dev.clicks.audits")
    assert (begun["eventType"], ended["eventType"]) == ("START", "COMPLETE")
    [table] = ended["inputs"]
    assert table["name"] == str(tmp_path / "warehouse" / "shop" / "clicks")
    known = table["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert [(each["name"], each["success"], each["severity"]) for each in known] == [
        ("not_null_user", True, "error"),
        ("few", False, "warn"),
    ]
    assert '"a"' not in json.dumps(found)


def test_what_cannot_be_found_out_is_left_out(tmp_path: Path) -> None:
    """A table or a ledger that cannot be read: each run has its end, and a note says it."""
    kept = Kept()

    def broken(*_: str) -> Any:
        raise ZeroDivisionError

    listener = LineageEvents(kept, "infold", broken, broken, column_sources_of)
    found = tell(project(tmp_path, ""), "run", SilentProgress(), [listener], good)

    assert [event["eventType"] for event in kept.events] == ENDS
    assert kept.closed
    assert found.notes == ("lineage failed: ZeroDivisionError",)


def test_every_schema_is_used() -> None:
    """The versions that events name are those of the schemas beside the tests."""
    named = {
        f"https://openlineage.io/spec/facets/{version}/{name}.json"
        for name, version in VERSIONS.items()
    }

    assert named | {"https://openlineage.io/spec/2-0-2/OpenLineage.json"} == set(BY_ID)


class TestSending:
    """To a file or a URL; the run is as it would have been."""

    def test_to_a_file(self, tmp_path: Path) -> None:
        """A line for each event, also in a new folder; none of an environment."""
        shop = project(tmp_path, "lineage: {file: out/lineage.jsonl, namespace: prod}")
        end(shop, good, environment="mine")
        assert not (tmp_path / "out").exists()

        assert end(shop, good) == DONE

        lines = (tmp_path / "out" / "lineage.jsonl").read_text(encoding="utf-8").splitlines()
        for line in lines:
            check(json.loads(line))
        assert len(lines) == 6
        assert json.loads(lines[0])["job"]["namespace"] == "prod"

    def test_to_a_url(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """In order, with headers that may be secret."""
        monkeypatch.setenv("TOKEN", "s3cret")
        hooks = "lineage: {url: '${env:LINEAGE}', headers: {Authorization: 'Bearer ${env:TOKEN}'}}"
        with receiver() as server:
            monkeypatch.setenv("LINEAGE", f"{server.url}/api/v1/lineage")
            assert end(project(tmp_path, hooks), good) == DONE

        assert [got.json["eventType"] for got in server.got] == ENDS
        assert {(got.headers["Authorization"], got.path) for got in server.got} == {
            ("Bearer s3cret", "/api/v1/lineage")
        }

    @pytest.mark.deep
    def test_a_server_that_does_not_take_them(self, tmp_path: Path) -> None:
        """One event is tried, one note says how many were not sent; the run waits once."""
        hooks = "lineage: {url: '%s', timeout: 200 milliseconds}"
        with receiver() as server:
            server.answer = 503
            found = end(project(tmp_path, hooks % server.url), good)
            assert len(server.got) == 1
            server.hang = threading.Event()
            before = time.monotonic()
            hung = end(project(tmp_path, hooks % server.url), good)
            took = time.monotonic() - before

        assert found.notes == ("lineage: 6 of 6 events were not sent: the answer was 503",)
        assert took < 5
        [note] = hung.notes
        assert note.startswith("lineage: 6 of 6 events were not sent: no answer")

    def test_what_it_lacks(self, tmp_path: Path) -> None:
        """A file that cannot be written, or a secret that is not there, is one note."""
        (tmp_path / "out").touch()
        file = tmp_path / "out" / "lineage.jsonl"
        for hooks, note in (
            ("{file: out/lineage.jsonl}", f"{file} was not written: File exists"),
            (
                "{url: '${env:NOT_SET_ANYWHERE}'}",
                "6 of 6 events were not sent: ${env:NOT_SET_ANYWHERE}, it is not set",
            ),
        ):
            found = end(project(tmp_path, f"lineage: {hooks}"), good)
            assert found.notes == (f"lineage: {note}",)


ELSEWHERE = ("lake.orders", "lake.own", "lake.named", "db.orders", "db.small")


def test_names_of_tables_elsewhere(tmp_path: Path) -> None:
    """By catalog, database and file; never with who asks for them."""
    sources = """
  lake.orders: {table: shop.orders, catalog: {type: rest, uri: 'https://lake/api'}, columns: *id}
  lake.own: {table: shop.own, columns: *id}
  lake.named: {table: shop.named, format: delta, catalog: {type: hive, uri: 'thrift://a:9083,thrift://b:9083'}}
  db.orders: {url: 'postgresql://me:${file:a/b@c}@db:5432/shop', table: public.orders, columns: *id}
  db.small: {url: 'sqlite:///in/shop.db', table: small, columns: *id}
"""
    first = "sources:\n  raw.clicks: {path: in/*.json, columns: &id {id: string}}"
    (tmp_path / "infold.yml").write_text(f"name: shop\n{first}{sources}", encoding="utf-8")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m.sql").write_text(
        "---\nmaterialization: view\n---\nSELECT id FROM raw.clicks", encoding="utf-8"
    )
    datasets = Datasets(api.open_project(tmp_path), lambda _: {}, column_sources_of)

    found = {name: tuple(datasets.named(name).values()) for name in ELSEWHERE}

    assert found == {
        "lake.orders": ("iceberg://lake/api", "shop.orders"),
        "lake.own": ("iceberg://catalog", "shop.own"),
        "lake.named": ("hive://a:9083", "shop.named"),
        "db.orders": ("postgres://db:5432", "shop.public.orders"),
        "db.small": ("file", str(tmp_path / "in" / "shop.db" / "small")),
    }


# -- the program's own runner, without Spark


@pytest.mark.deep
@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("fails", [False, True])
def test_every_step_begins_and_ends_once(tmp_path: Path, *, jobs: int, fails: bool) -> None:
    """Lineage and log have the steps of the result, and no listener failed."""
    play = DryPlay(SHAPES["fold"], tmp_path, "fold", tmp_path, 6, jobs=jobs)
    for number in range(2):
        play.arrive(Random(number))
    kept, log = Kept(), tmp_path / "log"
    listeners = [
        LineageEvents(kept, "infold", lambda _: {}, tuple, column_sources_of),
        JsonLog(log),
    ]

    def run(shown: Progress) -> RunResult:
        play.progress = shown
        with failing(lambda step: refusal(step.model) if fails and _last(play, step) else None):
            return play._run(None, ())

    try:
        found = tell(play.project, "run", SilentProgress(), listeners, run)
    except RunFailed as failed:
        found = failed.result
    assert bool(found.failures) == fails
    assert [note for note in found.notes if " failed: " in note] == []
    steps = [step.model for step, _ in found.steps]
    assert len(steps) > 1
    begun = Counter(one["job"]["name"] for one in kept.events if one["eventType"] == "START")
    ended = Counter(one["job"]["name"] for one in kept.events if one["eventType"] != "START")
    complete = [one for one in kept.events if one["eventType"] == "COMPLETE"]
    project = f"{play.project.name}.{play.project.target.name}"
    assert begun == ended
    assert [one["job"]["name"] for one in complete if one["job"]["name"] != project] == [
        f"{project}.{model}" for model in steps
    ]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["model"] for one in lines if one["event"] == "step_done"] == steps
    by_event = Counter(one["event"] for one in lines)
    assert by_event["step_began"] == by_event["step_done"] + by_event["step_failed"]
    assert lines[-1]["state"] == ("failed" if fails else "done")


def _last(play: DryPlay, step: Step) -> bool:
    """Whether it is a step of the last model that has a table."""
    return step.model == [node.name for node in play.project if node.inputs][-1]
