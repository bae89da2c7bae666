"""Each command asks the API for the right thing, prints it, and ends with the right exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli import sample
from tests.cli.conftest import FakeApi, Infold, Screen

from infold import api, demo
from infold.api import rows
from infold.core.hooks import Sinks
from infold.core.interval import Interval, parse_instant_text
from infold.core.model import Kind
from infold.core.plan import PlanOptions
from infold.core.record import Receipt
from infold.core.report import RunFailed, RunResult, Verdict
from infold.core.trace import Version
from infold.messages import command_errors, errors, faults
from infold.spark.jvm import java

DAY = Interval(parse_instant_text("2024-03-06"), parse_instant_text("2024-03-07"))


@cache
def three() -> pa.Table:
    """What a table holds."""
    return pa.table(
        {
            "day": pa.array([1, 2, 3], pa.int32()).cast(pa.date32()),
            "sessions": [10, 20, 30],
            "note": ["a", "", None],
        }
    )


class FakeLake:
    """Three rows of whatever is asked for."""

    def __init__(self) -> None:
        self.asked: dict[str, object] = {}

    def rows(self, table: str, **asked: object) -> pa.Table:
        """The rows, as many as are wanted."""
        self.asked = {"table": table, **asked}
        limit = asked.get("limit")
        return three() if limit is None else three().slice(0, limit)

    def columns(self, _: str) -> dict[str, str]:
        """Those of the rows."""
        return dict.fromkeys(three().column_names, "")


class FakeLedger:
    """Knows how many rows the daily table has."""

    def newest_versions(self) -> dict[str, Version]:
        """Its newest version."""
        return {"daily": Version("daily", 3, 1, "s", "r", 0, rows=3)}

    def left_out(self) -> dict[str, int]:
        """No session is counted."""
        return {}

    traces = left_out

    def cells(self, _: str) -> tuple[()]:
        """There are so few rows that it does not matter where they are."""
        return ()


@pytest.fixture
def lake(fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> FakeLake:
    """The sample project's tables."""
    found = FakeLake()
    for name in ("lake_of", "published_lake"):
        monkeypatch.setattr(rows, name, lambda _: found)
    for module in (api, rows):
        monkeypatch.setattr(module, "ledger_of", lambda _: FakeLedger())
    return found


def test_global_options(fake: FakeApi, infold: Infold) -> None:
    """`--project` and `--target` before the command reach the API; `--version` is one line."""
    assert infold("-C", "shop", "--target", "prod", "check").exit_code == 0
    assert fake.asked["open_project"] == {"root": Path("shop"), "target": "prod"}
    assert infold("--version").stdout == "infold 0.1.0\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("fly", "No such command 'fly'"),
        ("plan --auto --start 2024-03-06", "--auto"),
        ("plan --forward-only dayly", "unknown-model: "),
        ("plan --forward-only daily --effective-from soon", "not-an-instant: "),
        ("plan dialy", "unknown-model: "),
        ("run dialy", "unknown-model: "),
        ("run --watch --json", "--watch"),
        ("run --watch --env x", "--watch"),
        ("check --watch --json", "--watch"),
        ("backbuild daily --start 2024-03-04", "`infold restate` needs neither"),
        ("history dayly", "unknown-model: "),
        ("status --plot --json", "--plot draws"),
        ("explain countries 2024-03-06", "not-a-cell: countries is not divided into cells"),
        ("explain sessions --deep", "infold explain session ID --deep"),
        ("explain session", "infold explain"),
        ("explain daily cafe", "cafe"),
        ("show dayli", "nearest:  daily"),
        ("show daily --output daily.csv", "--output needs --format: csv, json, parquet."),
        ("show daily --plot --format csv", "--plot draws"),
        ("show daily --lines --format csv", "--lines draws"),
        ("dag --format svg --json", "--json"),
        ("dag --format png", "png"),
        *(
            (f"show no_such_table --format csv --output {url}", "s3://BUCKET/NAME")
            for url in (
                *("webhdfs://b/a.csv", "hdfs:///a.csv", "https://b/a.csv"),
                *("s3://b", "s3://b/", "s3://*/a", "s3://b/a/"),
            )
        ),
    ],
)
def test_wrong_usage(lake: FakeLake, fake: FakeApi, infold: Infold, words: str, why: str) -> None:
    """What a command cannot do ends with exit code 2 and says why, before anything is done."""
    result = infold(*words.split())

    assert (result.exit_code, result.stdout) == (2, "")
    assert why in result.stderr
    assert not {"run", "explain", "session_history"} & fake.asked.keys()
    assert lake.asked == {}


SCREENS = {
    "plan --json": "plan_json",
    "run": "run_command",
    "run -v": "run_verbose",  # the reasons before each step
    "run --json": "run_json",
    **{word: f"{word}_command" for word in ("status", "history", "verify")},
    **{f"{word} --json": f"{word}_json" for word in ("status", "history", "verify")},
    "explain sessions 2024-03-06T12:00": "explain_cell",
    "explain sessions 2024-03-06 --json": "explain_json",
    "explain session cafe": "session_history_command",
    "explain sessions cafe --json": "session_history_json",
}


@pytest.mark.parametrize("words", SCREENS)
def test_screens(fake: FakeApi, infold: Infold, screen: Screen, words: str) -> None:
    """Each command prints a screen for people, without colour or moving text, and with `--json` an
    object for programs and nothing else: every state of a model, runs newest first with their
    errors, a line for each step, a line for each model that is equal to its rebuild.
    """
    result = infold(*words.split())

    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    if "--json" in words:
        json.loads(result.stdout)
    screen(SCREENS[words], result.stdout)


class TestPlan:
    """``infold plan``."""

    def test_the_screen(self, fake: FakeApi, infold: Infold, screen: Screen) -> None:
        """It prints the plan's screen, with its own options in the `run` that it suggests."""
        result = infold(
            "plan", "--start", "2024-03-06", "--select", "+daily", "--as-of", "2024-03-11"
        )

        assert result.exit_code == 0
        assert fake.asked["observe"]["as_of"] == parse_instant_text("2024-03-11")
        assert fake.asked["observe"]["asked"] == fake.asked["make_plan"]["asked"]
        assert fake.asked["make_plan"]["asked"].window.start == parse_instant_text("2024-03-06")
        assert fake.asked["make_plan"]["select"] == ("+daily",)
        screen("plan_command", result.stdout)
        assert infold("plan", "--auto").exit_code == 0, "it says what is the default"

    def test_forward_only(self, fake: FakeApi, infold: Infold) -> None:
        """`--forward-only` names models, `--effective-from` when; the suggested run has both."""
        words = ("--forward-only", "daily", "--effective-from", "2024-03-06")
        result = infold("plan", *words)

        assert result.exit_code == 0
        at = parse_instant_text("2024-03-06")
        assert fake.asked["make_plan"]["asked"].forward_only == {"daily": at}
        assert f"infold run {' '.join(words)}" in result.stdout
        infold("plan", "--forward-only", "daily")
        assert fake.asked["make_plan"]["asked"].forward_only == {"daily": None}

    def test_models_are_named_as_by_status(self, fake: FakeApi, infold: Infold) -> None:
        """Models named as arguments are selected like the terms of `--select`. A window that is not
        aligned with cells is refused before anything is observed.
        """
        result = infold("plan", "--end", "2024-03-06T01:00")
        assert result.exit_code == 2
        assert "observe" not in fake.asked
        assert result.stderr.startswith("window-unaligned: --end 2024-03-06 01:00 lies inside")
        for command, asked in (("plan", "make_plan"), ("run", "run")):
            result = infold(command, "daily", "tag:core", "-s", "latest")
            assert result.exit_code == 0
            assert fake.asked[asked]["select"] == ("latest", "daily", "tag:core")


class TestRun:
    """``infold run``."""

    def test_options_reach_the_api(self, fake: FakeApi, infold: Infold) -> None:
        """Window, selection, `--as-of`, `--max-rows` and `--wait` reach the API."""
        infold(
            "run", "--start", "2024-03-06", "--end", "2024-03-07", "-s", "daily", "-x", "countries",
            "--as-of", "2024-03-11", "--max-rows", "1000", "--wait", "2.5", "--per-partition",
            "--ignore-cron", "--fail-fast",
        )  # fmt: skip
        asked = fake.asked["run"]
        del asked["progress"]

        assert asked == {
            "asked": PlanOptions(window=DAY, batch_size=1, ignore_cron=True),
            "select": ("daily",),
            "exclude": ("countries",),
            "as_of": parse_instant_text("2024-03-11"),
            "max_rows": 1000,
            "wait": 2.5,
            "jobs": None,
            "allow_refresh": False,
            "fail_fast": True,
            "allow_removals": False,
            "sinks": Sinks(),
        }

    @pytest.mark.parametrize(
        "words",
        [
            *("run", "apply --yes", "restate daily"),
            "backbuild daily --start 2024-03-04 --end 2024-03-06",
        ],
    )
    def test_files_for_other_programs(
        self, fake: FakeApi, infold: Infold, tmp_path: Path, words: str
    ) -> None:
        """`--metrics` and `--log` reach the API; without a folder for them nothing is run."""
        metrics, log = tmp_path / "a.prom", tmp_path / "b.log"
        infold(*words.split(), "--metrics", str(metrics), "--log", str(log))
        sinks = fake.asked.pop("run")["sinks"]

        wrong = infold(*words.split(), "--metrics", str(tmp_path / "gone" / "a.prom"))

        assert sinks == Sinks(metrics, log)
        assert wrong.exit_code == 2
        assert "there is no such folder" in wrong.stderr
        assert "run" not in fake.asked

    def test_nothing_to_do(self, fake: FakeApi, infold: Infold, screen: Screen) -> None:
        """A run with nothing to do says so and ends with exit code 0."""
        fake.result = RunResult("r", "done", (sample.nothing(),))

        result = infold("run")

        assert result.exit_code == 0
        screen("run_nothing", result.stdout)

    def test_a_run_that_failed_in_part(self, fake: FakeApi, infold: Infold, screen: Screen) -> None:
        """A run that failed in part prints what was done, what was not and why, then the errors:
        exit code 1. Its JSON has the steps and receipt of what was committed, and the error.
        """
        fake.result, fake.raises = sample.failed(), RunFailed(sample.failed())

        result = infold("run")
        assert result.exit_code == 1
        assert result.stderr == f"\n{fake.raises}\n"
        screen("run_failed", result.stdout)

        result = infold("run", "--json")
        found = json.loads(result.stdout)
        assert result.exit_code == 1
        assert [step["model"] for step in found["steps"]] == ["clicks", "sessions", "daily"]
        assert found["receipt"]["arrived"] == 10_317
        assert found["error"]["exit_code"] == 1
        screen("run_failed_json", result.stdout)

    @pytest.mark.parametrize(
        "words",
        [
            "restate daily --start 2024-03-04",  # with or without
            "backbuild daily --start 2024-03-04 --end 2024-03-06",
        ],
    )
    def test_restate_and_backbuild(self, fake: FakeApi, infold: Infold, words: str) -> None:
        """`--fail-fast` makes both stop at the first failure, as run does; `--allow-destructive`
        counts for the run as in apply; with nothing to build they print an empty list of steps.
        """
        infold(*words.split())
        plain = fake.asked.pop("run")
        allowed = ("--allow-destructive", "daily", "--allow-destructive", "users")
        infold(*words.split(), "--fail-fast", *allowed)
        asked = fake.asked.pop("run")
        fake.plan = sample.nothing()
        found = json.loads(infold(*words.split(), "--json").stdout)

        assert [one["fail_fast"] for one in (plain, asked)] == [False, True]
        assert plain["asked"].allow_destructive == frozenset()
        assert asked["asked"].allow_destructive == {"daily", "users"}
        assert found["steps"] == []
        assert "run" not in fake.asked

    def test_a_run_that_was_refused_completely(self, fake: FakeApi, infold: Infold) -> None:
        """A run that wrote nothing because all of it was refused ends with exit code 3."""
        fake.raises = RunFailed(sample.refused())

        result = infold("run")

        assert result.exit_code == 3
        assert result.stdout == (
            "\nRun r: refused, nothing was written\n"
            "  refused     daily  protected: prod is protected, and this would rebuild one of its "
            "tables\n"
            "  not tried   users  because of daily\n"
        )

    def test_many_batches_are_one_line(self, fake: FakeApi, infold: Infold) -> None:
        """The summary names a model once, with the number of its steps and their sum."""
        [*_, daily] = sample.result().steps
        fake.result = replace(sample.result(), steps=(daily,) * 49, receipt=Receipt(arrived=290))

        lines = infold("run", "-v").stdout.partition("Summary")[2].splitlines()

        [line] = [line for line in lines if "daily" in line]
        said = "daily in 49 steps: 490.00 read, 490.00 scanned per arrived row"
        assert [cell for cell in line.split("  ") if cell] == ["time", "44.1 s", said]

    def test_a_refusal(self, fake: FakeApi, infold: Infold) -> None:
        """A refusal is its message on stderr with its own exit code, or its parts as JSON."""
        fake.raises = errors.InfoldError(
            "locked", "another run holds it", (("run", "r"),), "Wait.", 3
        )

        result = infold("run")
        assert (result.exit_code, result.stdout) == (3, "")
        assert result.stderr == f"{fake.raises}\n"

        result = infold("run", "--json")
        assert result.exit_code == 3
        assert json.loads(result.stdout)["error"] == fake.raises.record

    def test_ctrl_c(self, fake: FakeApi, infold: Infold) -> None:
        """Ctrl-C ends the command with one line and exit code 130; finished steps are kept."""
        fake.raises = KeyboardInterrupt()  # type: ignore[assignment]

        result = infold("run")

        assert result.exit_code == 130
        assert result.stderr.strip() == (
            "Stopped. What was finished is kept; the next run goes on from there."
        )

    def test_a_crash(self, fake: FakeApi, infold: Infold, tmp_path: Path) -> None:
        """A crash prints one line that names the file with the traceback."""
        fake.raises = ZeroDivisionError("nobody expected this")

        result = infold("-C", str(tmp_path), "run")

        log = tmp_path / ".infold" / "last-error.log"
        assert result.exit_code == 1
        assert result.stderr == (
            "internal: ZeroDivisionError: nobody expected this "
            f"(a mistake in infold; the traceback is in {log})\n"
        )
        assert "Traceback (most recent call last)" in log.read_text()


class TestReports:
    """The commands that only report: status, history, explain, check, verify."""

    def test_history_of_a_model(self, fake: FakeApi, infold: Infold) -> None:
        """`history MODEL -n N` asks the API for that model and number of runs."""
        assert infold("history", "daily", "-n", "3").exit_code == 0
        assert fake.asked["history"] == {"limit": 3, "model": "daily"}

    @pytest.mark.parametrize(
        ("words", "asked"),
        [
            ("sessions 2024-03-06T12:00", DAY),  # the cell that contains the instant
            ("sessions 20240306", DAY),
            ("session cafe", {"id": "cafe", "model": None, "deep": False}),  # of any model
            ("sessions cafe", {"id": "cafe", "model": "sessions", "deep": False}),
            ("session cafe --deep", {"id": "cafe", "model": None, "deep": True}),  # asks Spark
            ("session 20240306", {"id": "20240306", "model": None, "deep": False}),
        ],
    )
    def test_explain(self, fake: FakeApi, infold: Infold, words: str, asked: object) -> None:
        """An instant means a cell; `session ID` looks in all models, `MODEL ID` in that one."""
        infold("explain", *words.split())

        found = fake.asked["explain" if asked == DAY else "session_history"]
        assert (found["cell"] if asked == DAY else found) == asked

    def test_a_model_that_is_named_session(self, fake: FakeApi, infold: Infold) -> None:
        """A model named `session` is explained when no id follows, and so are its cells."""
        model = replace(sample.SESSIONS.model, name="session")
        fake.project = sample.project(replace(sample.SESSIONS, model=model))

        infold("explain", "session")
        assert fake.asked["explain"]["model"] == "session"
        infold("explain", "session", "2024-03-06")
        assert fake.asked["explain"]["cell"] == DAY
        assert "session_history" not in fake.asked
        infold("explain", "session", "cafe")
        assert fake.asked["session_history"]["id"] == "cafe"

    def test_check(self, fake: FakeApi, infold: Infold) -> None:
        """It counts models and sources, and names each change that rebuilds a model."""
        landed = replace(
            sample.COUNTRIES, landed=True, model=replace(sample.COUNTRIES.model, name="raw.c")
        )
        fake.project = sample.project(landed, *sample.project())
        result = infold("check")
        note = (
            "daily: every change of countries builds all of it: countries is not only "
            "joined by equality with columns of a row that has a time"
        )

        assert result.stdout.startswith("5 models, 1 source, no findings in ")
        assert result.stdout.splitlines()[1:] == [f"note: {note}"]
        counts = {"models": 5, "sources": 1}
        shown = json.loads(infold("check", "--json").stdout)
        assert shown == {**counts, "findings": [], "notes": [note]}

    def test_verify_finds_a_difference(self, fake: FakeApi, infold: Infold, screen: Screen) -> None:
        """`verify` ends with exit code 4 when a table differs, and shows what differs."""
        fake.verified = sample.verification(equal=False)

        result = infold("verify", "--select", "sessions", "--sample", "5")

        assert result.exit_code == 4
        assert fake.asked["verify"]["sample"] == 5
        screen("verify_different", result.stdout)

    def test_verify_beside_runs(self, fake: FakeApi, infold: Infold) -> None:
        """A table that runs changed meanwhile is not verified: 3, or 4 where another differs."""
        note = "a run changed it meanwhile, 3 times: verify it between two runs"
        daily = Verdict("daily", Kind.TABLE, 0, 0, 0, equal=False, note=note, moved=True)
        codes = []
        for equal in (True, False):
            found = sample.verification(equal=equal)
            fake.verified = replace(found, models=(*found.models[:3], daily))
            codes.append(infold("verify").exit_code)
        told = infold("verify").stdout

        assert codes == [3, 4]
        assert f"daily: {note}" in told
        assert "sessions differs from a rebuild, daily was not compared" in told


class TestShow:
    """``infold show``."""

    def test_rows(self, lake: FakeLake, infold: Infold, screen: Screen) -> None:
        """`show` prints an aligned table and how many rows it does not show."""
        result = infold("show", "daily", "--limit", "2")

        assert lake.asked == {"table": "daily", "columns": None, "where": None}
        screen("show", result.stdout)

    @pytest.mark.parametrize(
        ("words", "asked"),
        [
            ("daily --where day>='2024-03-09'", {"where": "day>='2024-03-09'"}),
            ("daily --columns note", {"columns": ["note", "day"]}),  # which it is sorted by
            ("daily --order -day", {"where": None, "limit": None}),
            ("daily --limit 0", {"where": None}),
            ("set_aside", {"table": "infold__set_aside"}),  # a short name
        ],
    )
    def test_what_is_read(
        self, lake: FakeLake, infold: Infold, words: str, asked: dict[str, object]
    ) -> None:
        """Options reach the reader of the table."""
        assert infold("show", *words.split()).exit_code == 0
        assert lake.asked == lake.asked | asked

    def test_no_rows_set_aside(
        self, lake: FakeLake, infold: Infold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An empty table gives no line of JSON, a header of CSV, and a file."""

        def rows(table: str, **_: object) -> None:
            raise command_errors.not_built(name=table)

        monkeypatch.setattr(lake, "rows", rows)
        header = "model,source,file,file_id,reason,raw,event_time"
        out, words = tmp_path / "out.csv", ("show", "set_aside", "--format", "csv")
        assert infold("show", "set_aside", "--format", "json").stdout == ""
        assert infold(*words).stdout.replace('"', "").strip() == header
        infold(*words, "--output", str(out), "--columns", "file,reason")
        assert out.read_text().replace('"', "").strip() == "file,reason"
        assert "no rows" in infold("show", "set_aside").stdout

    def test_csv_that_a_script_can_read(
        self, lake: FakeLake, infold: Infold, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """CSV quotes where a reader needs it; NULL is empty, an empty text is two quotes."""
        values = {
            "id": ["6f1e", None, "", "a,b", 'a"b', "a\nb", " a "],
            "at": pa.array([0, *[None] * 6], pa.timestamp("us", "UTC")),
            "parts": [[1, 2], *[None] * 6],
            "bytes": [b"\xff", *[None] * 6],
        }
        monkeypatch.setattr(lake, "rows", lambda *_, **__: pa.table(values))
        monkeypatch.setattr(lake, "columns", lambda _: values)

        lines = infold("show", "daily", "--format", "csv").stdout.split("\n")

        assert lines == [
            "id,at,parts,bytes",
            '"",,,',
            " a ,,,",
            '6f1e,1970-01-01 00:00:00.000000Z,"[1, 2]",ff',
            '"a',
            'b",,,',
            '"a""b",,,',
            '"a,b",,,',
            ",,,",
            "",
        ]

    def test_files(self, lake: FakeLake, infold: Infold, tmp_path: Path) -> None:
        """JSON lines and Parquet with the table's own types; the message goes to stderr."""
        typed = tmp_path / "daily.parquet"
        infold("show", "daily", "--limit", "2", "--format", "parquet", "-o", str(typed))
        assert parquet.read_table(typed).equals(three().slice(0, 2))
        path = tmp_path / "daily.json"

        result = infold("show", "daily", "--format", "json", "--output", str(path))

        assert (result.stdout, result.stderr) == ("", f"3 rows of daily written to {path}.\n")
        assert path.read_text() == infold("show", "daily", "--json").stdout
        last = {"day": "1970-01-04", "sessions": 30, "note": None}
        assert json.loads(path.read_text().splitlines()[2]) == last

    @pytest.mark.parametrize("name", ["csv", "json", "parquet"])
    def test_the_options_of_before(
        self, lake: FakeLake, infold: Infold, tmp_path: Path, name: str
    ) -> None:
        """`--csv FILE`, `--json FILE` and `--parquet FILE` still work, and show the new way."""
        old, new = tmp_path / f"old.{name}", tmp_path / f"new.{name}"

        result = infold("show", "daily", f"--{name}", str(old))
        infold("show", "daily", "--format", name, "--output", str(new))

        assert old.read_bytes() == new.read_bytes()
        assert result.stderr.startswith(
            f"--{name} {old} is now `--format {name} --output {old}`; it still works.\n"
        )

    def test_a_view(self, lake: FakeLake, infold: Infold, monkeypatch: pytest.MonkeyPatch) -> None:
        """A view is evaluated by Spark, with one more row than is shown, and says so."""
        limits: list[int | None] = []

        def evaluate(_project: object, _view: str, limit: int | None) -> pa.Table:
            limits.append(limit)
            return three()

        monkeypatch.setattr(rows, "evaluate", evaluate)

        result = infold("show", "latest", "--columns", "sessions", "--limit", "2")

        assert result.stderr == "latest is a view: starting Spark to evaluate it.\n"
        assert result.stdout.splitlines()[0] == "sessions"
        assert limits == [2 + 1], "one more tells whether there are more"
        assert infold("show", "latest", "--columns", "sesions").exit_code == 2


def test_a_new_project(infold: Infold, tmp_path: Path) -> None:
    """It has no findings, is named after its folder, and can be planned at once. `init` writes
    nothing into a folder that is in use.
    """
    directory, used = tmp_path / "my-shop", tmp_path / "used"

    assert infold("init", str(directory)).exit_code == 0
    assert infold("-C", str(directory), "check").stdout.startswith("3 models, 1 source, no")
    assert api.open_project(directory, None).name == "my_shop"
    plan = json.loads(infold("-C", str(directory), "plan", "--json").stdout)
    assert [step["model"] for step in plan["steps"]] == ["clicks", "sessions", "daily"]
    assert [one["rows"] for one in plan["steps"][0]["files"]["arrived"]] == [5, 4]
    used.mkdir()
    (used / "file").write_text("mine")
    assert infold("init", str(used)).exit_code == 2
    assert [path.name for path in used.iterdir()] == ["file"]


class TestDemo:
    """``infold demo``."""

    @pytest.fixture
    def acts(self, fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
        """One act that brings files, one that brings none; no Java is looked for."""

        def arrive() -> None:
            fake.plan = sample.plan()

        def rest() -> None:
            fake.plan = sample.nothing()

        found = [demo.Act("late rows", "Two files.", arrive), demo.Act("nothing", "Quiet.", rest)]
        monkeypatch.setattr(demo, "acts", lambda _: found)
        monkeypatch.setattr(java, "find_java", lambda: None)

    def test_the_screen(
        self, acts: None, fake: FakeApi, infold: Infold, screen: Screen, tmp_path: Path
    ) -> None:
        """Acts with strip and summary, then the verification, by which the command ends."""
        result = infold("demo", str(tmp_path / "demo"))

        assert result.exit_code == 0
        screen("demo", result.stdout.replace(str(tmp_path), ""))
        fake.verified = sample.verification(equal=False)
        assert infold("demo", str(tmp_path / "again")).exit_code == 4

    def test_without_java(
        self, infold: Infold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without Java `demo` says so before it writes anything."""

        def none() -> None:
            raise faults.java_missing((("JAVA_HOME", "not set"),))

        monkeypatch.setattr(java, "find_java", none)

        result = infold("demo", str(tmp_path / "demo"))

        assert result.exit_code == 2
        assert result.stderr.startswith("java-missing: ")
        assert list(tmp_path.iterdir()) == []
