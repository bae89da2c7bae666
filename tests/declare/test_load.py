"""A folder is loaded as a project: declarations, what follows from them, and the cache."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.declare.shop import (
    CLICKS,
    DAILY,
    INFOLD,
    SESSIONS,
    SHOP,
    model,
    project,
    read,
    spoilt,
    write,
)

from infold.core.formats import Format
from infold.core.interval import DAY, HOUR, MINUTE, Granularity, parse_instant_text
from infold.core.model import Column, Drift, Kind, Materialization, Timeseries
from infold.core.project import Input
from infold.core.queries import Fallback, Output, SessionsQuery
from infold.core.sessions import Campaign, MaxLength, Midnight, Nulls, StartEvents
from infold.core.target import Target
from infold.core.type_changes import is_type
from infold.declare import cache, check, load
from infold.declare.cache import FILE
from infold.declare.folder import read_folder
from infold.declare.sources import find_pattern_fault
from infold.messages.errors import InfoldError, InfoldErrors


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The small right project on the disk."""
    return write(tmp_path / "shop")


class TestADeclaredProject:
    """The values of a project are those declared in its files."""

    def test_sources_are_as_declared(self) -> None:
        """Sources have their declared names, types and exact lengths of time, with defaults."""
        source = project().sources["raw.clicks"]

        assert (source.path, source.format) == ("landing/clicks/*.json", Format.JSON)
        assert source.columns[0] == Column("event_id", "string")
        assert source.columns[-1] == Column("amount", "decimal(18,2)")
        assert (source.event_time_column, source.received_column) == ("event_ts", "seen_at")
        assert (source.future_tolerance, source.settle) == (HOUR, 0)
        assert (source.timestamp_format, source.on_drift) == ("iso", Drift.ERROR)
        assert str(source.place) == "infold.yml:5"
        said = "seen_at\n    future_tolerance: 2 days\n    settle: 90 seconds"
        source = project(spoilt("infold.yml", "seen_at", said)).sources["raw.clicks"]
        assert (source.future_tolerance, source.settle) == (2 * DAY, MINUTE * 3 // 2)

    def test_models_are_as_declared(self) -> None:
        """Models come after what they read, with their kinds, time dimensions, keys, the SELECT
        as written with its line, and what follows from it: columns, and inputs by their cells.
        """
        shop = project()
        clicks, sessions, daily = (node.model for node in shop)

        assert [m.name for m in (clicks, sessions, daily)] == ["clicks", "sessions", "daily"]
        assert [m.kind for m in (clicks, sessions, daily)] == [
            Kind.EVENTS,
            Kind.SESSIONS,
            Kind.INCREMENTAL_TABLE,
        ]
        assert clicks.unique_key == ("event_id",)
        assert clicks.timeseries == Timeseries("event_ts", "event_ts", Granularity.DAY)
        assert sessions.timeseries == Timeseries("session_start", "session_start", Granularity.DAY)
        assert sessions.sessions is not None
        assert sessions.sessions.gap == 30 * MINUTE
        assert daily.timeseries == Timeseries("session_start", "day", Granularity.DAY)
        assert sessions.sql.startswith("SELECT count(*)")
        assert (sessions.sql_line, str(sessions.place)) == (6, "models/sessions.sql:1")
        own = ("session_id", "user_id", "session_start", "session_end")
        assert shop["sessions"].columns == (*own, "events", "revenue", "entry_url")
        assert shop["daily"].columns == ("day", "sessions", "revenue")
        assert shop["clicks"].inputs == (Input("raw.clicks", "event_ts"),)
        assert shop["sessions"].inputs == (Input("clicks", "event_ts"),)
        assert shop["daily"].inputs == (Input("sessions", "session_start"),)
        assert (shop["clicks"].source, "raw.clicks" in shop) == ("raw.clicks", False)

    def test_starts(self) -> None:
        """A start is an instant, of all events models or of a model; there may be none. One of
        sessions is a WHERE over events.
        """
        begun = {
            **SHOP,
            "models/clicks.sql": CLICKS.replace("unique_key", "start: 2024-03-01\nunique_key"),
            "models/sessions.sql": SESSIONS.replace("sessions:", "start: 2024-03-02\nsessions:"),
        }
        plain, own = project(), project(begun)

        assert project(spoilt("infold.yml", "start: 2024-01-01\n", "")).start is None
        assert plain.start == plain["clicks"].start == parse_instant_text("2024-01-01")
        assert plain["sessions"].start is None
        assert own["clicks"].start == parse_instant_text("2024-03-01")
        assert own["sessions"].start == parse_instant_text("2024-03-02")
        query = own["sessions"].query
        assert query is not None
        assert query.where == "`event_ts` >= TIMESTAMP '2024-03-02 00:00:00+00:00'"
        assert query.before_start == "`event_ts` < TIMESTAMP '2024-03-02 00:00:00+00:00'"

    def test_comments_around_front_matter_and_query(self) -> None:
        """The SELECT comes without semicolon and surrounding comments, so that it can be put in
        parentheses; front matter may follow comments, such as a license. Files with Windows line
        ends and a byte order mark are read like others.
        """
        text = f"-- Copyright the shop\n\n{DAILY.rstrip()} -- by day\n;\n-- the end\n"
        model = project({**SHOP, "models/daily.sql": text})["daily"].model

        assert model.sql.endswith("GROUP BY 1")
        assert model.sql_line == 8
        files = {
            name: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
            for name, text in SHOP.items()
        }
        assert [node.fingerprint for node in project(files)] == [n.fingerprint for n in project()]


class TestSources:
    """What follows from the path and the keys of a source."""

    def test_files_by_their_names_and_columns_by_their_places(self) -> None:
        """The extension of a path gives format and delimiter; without a header, declared columns
        are the fields in order, and a file's time is none. An Iceberg source may omit its columns,
        because the table's metadata has them.
        """
        keys = "in/*.TSV.gz\n    header: false\n    quote: none\n    file_time_column: at"
        source = project(spoilt("infold.yml", "countries.csv", keys)).sources["raw.countries"]

        assert (source.format, source.delimiter) == (Format.CSV, "\t")
        assert source.positions == ("code", "country")
        assert not source.quoted
        assert source.without_columns(["code"]).read_positions == [1]
        assert project().sources["raw.countries"].delimiter == ","
        old = "path: countries.csv\n    columns: {code: string, country: string}"
        files = spoilt("infold.yml", old, "table: geo.countries\n    catalog: geo.db")
        source = project(files).sources["raw.countries"]
        assert (source.format, source.table) == (Format.ICEBERG, "geo.countries")
        assert source.columns == ()

    @pytest.mark.parametrize(
        ("says", "listing", "window"),
        [
            ("", None, 3 * DAY),
            ("full_listing: always", None, 3 * DAY),
            ("full_listing: daily", "daily", 3 * DAY),
            ("full_listing: 6 hours\n    listing_window: 0 days", "6 hours", 0),
        ],
    )
    def test_how_often_everything_is_listed(
        self, says: str, listing: str | None, window: int
    ) -> None:
        """By default always; else by the calendar or after a length of time."""
        dated = f"in/dt={{date}}/*.json\n    {says}"
        files = spoilt("infold.yml", "landing/clicks/*.json", dated)
        source = project(files).sources["raw.clicks"]

        assert (source.path, source.full_listing) == ("in/dt={date}/*.json", listing)
        assert source.listing_window == window


class TestLandedSources:
    """A source that is read by anything but an events model has a table of its own."""

    BY_COUNTRY = "---\nmaterialization: table\n---\nSELECT country FROM raw.countries"

    def test_sources_are_landed(self) -> None:
        """A lookup without time is one cell without a key, before its readers; a source with event
        times has cells of a day, and is read by them.
        """
        of_clicks = "---\nmaterialization: view\n---\nSELECT * FROM raw.clicks"
        files = {**SHOP, "models/a.sql": self.BY_COUNTRY, "models/b.sql": of_clicks}
        shop = project(files)
        landed, clicks = shop["raw.countries"], shop["raw.clicks"]
        names = [node.name for node in shop]

        assert names.index("raw.countries") < names.index("a")
        assert (landed.landed, landed.source) == (True, "raw.countries")
        assert (landed.model.kind, landed.model.unique_key) == (Kind.EVENTS, ())
        assert landed.model.timeseries is None
        assert landed.model.sql == "SELECT `code`, `country` FROM `raw`.`countries`"
        assert landed.columns == ("code", "country")
        assert shop["a"].inputs == (Input("raw.countries", None),)
        assert clicks.model.timeseries == Timeseries("event_ts", "event_ts")
        assert shop["b"].inputs == (Input("raw.clicks", "event_ts"),)

    def test_a_column_of_infolds_own_names_is_refused_where_it_is_declared(self) -> None:
        """The source's owner named it: an events model has to give it another name."""
        files = spoilt("infold.yml", "code: string", "_code: string")

        _, [error] = read({**files, "models/a.sql": self.BY_COUNTRY})

        assert (error.slug, str(error.at)) == ("reserved-column", "infold.yml:17")
        assert "SELECT _code AS other" in error.todo


BY_DAY = """---
materialization: table
incremental: {}
timeseries: {event_time_column: event_ts, partition_column: day}
---
SELECT to_date(event_ts) AS day, country FROM paid JOIN raw.countries ON code = url
"""
BY_URL = model("cumulative_aggregate", "SELECT url, count(*) AS n FROM clicks GROUP BY url")


def over(view: str) -> dict[str, str]:
    """The project with sessions over a view."""
    files = spoilt("models/sessions.sql", "FROM clicks", "FROM paid")
    return {**files, "models/by_url.sql": BY_URL, "models/paid.sql": model("view", view)}


class TestViews:
    """A view is resolved: its readers depend on the tables it reads."""

    def test_inputs_are_stored_tables(self) -> None:
        """References name the view, and inputs are the stored tables behind it."""
        files = {**over("SELECT * FROM clicks WHERE amount > 0"), "models/by_day.sql": BY_DAY}
        node = project(files)["by_day"]

        assert node.reads == ("paid", "raw.countries")
        assert node.inputs == (Input("clicks", "event_ts"), Input("raw.countries", None))

    @pytest.mark.parametrize(
        ("view", "time", "unique"),
        [
            ("SELECT * FROM clicks WHERE amount > 0", "event_ts", True),
            ("SELECT event_id, event_ts AS t, user_id, amount, url FROM clicks", "t", True),
            ("SELECT a.* FROM clicks AS a JOIN raw.countries ON code = url", "event_ts", False),
            ("SELECT a.* FROM clicks AS a LEFT JOIN by_url USING (url)", "event_ts", True),
            ("SELECT a.* FROM by_url AS b JOIN clicks AS a ON a.url = b.url", "event_ts", True),
            ("SELECT * FROM clicks UNION ALL SELECT * FROM clicks", "event_ts", False),
            (
                """SELECT event_id, user_id, event_ts AS at, url, 1 AS amount FROM clicks UNION ALL
                SELECT event_id, user_id, event_ts, url, n FROM clicks JOIN by_url USING (url)""",
                "at",
                False,
            ),
        ],
    )
    def test_sessions_may_read_a_view(self, view: str, time: str, unique: bool) -> None:
        """Sessions may read a view that keeps time, which may have another name, and key: a
        projection with WHERE, UNION ALL, and joins with lookups by equality.
        """
        query = project(over(view))["sessions"].query

        assert query is not None
        assert (query.input, query.time_column, query.key) == ("paid", time, ("event_id",))
        assert query.unique is unique

    @pytest.mark.parametrize(
        "view",
        [
            "SELECT event_ts, user_id, amount, url FROM clicks",
            "SELECT event_id, user_id, amount, url, date(event_ts) AS event_ts FROM clicks",
            "SELECT DISTINCT * FROM clicks",
            "SELECT a.* FROM clicks AS a JOIN raw.countries ON code > url",
            "SELECT a.* FROM clicks AS a FULL JOIN raw.countries ON code = url",
            "SELECT a.* FROM clicks AS a JOIN clicks AS b ON a.event_id = b.event_id",
            "SELECT * FROM clicks UNION SELECT * FROM clicks",
            "SELECT * FROM clicks UNION ALL SELECT * FROM clicks ORDER BY event_id",
            "SELECT * FROM clicks UNION ALL SELECT DISTINCT * FROM clicks",
            """SELECT event_id, user_id, event_ts, url, amount, event_ts AS t FROM clicks UNION ALL
            SELECT event_id, user_id, date(event_ts), url, amount, date(event_ts) FROM clicks""",
        ],
    )
    def test_sessions_may_not_read_every_view(self, view: str) -> None:
        """None without the key, with another time, or with rows made from several."""
        assert "no-event-time" in [error.slug for error in read(over(view))[1]]


class TestMerging:
    """Keys come from front matter, `models` of infold.yml, and for what they leave `defaults`."""

    def test_keys_of_three_places_come_together(self) -> None:
        """Keys from three places are merged, nested ones too; defaults apply only where they mean
        something. A model declared in infold.yml alone has a file that is only its query.
        """
        text = INFOLD + (
            "models:\n  daily: {tags: [finance], timeseries: {granularity: week}}\n"
            "  users: {materialization: view}\n  all: {materialization: table}\n"
            "defaults: {tags: [all], timeseries: {granularity: hour}, prefer: [amount desc]}\n"
        )
        files = spoilt("models/daily.sql", ", granularity: day", "")
        users = "SELECT DISTINCT user_id FROM clicks"
        whole = {"models/all.sql": "SELECT count(*) AS n FROM clicks"}
        shop = project({**files, "infold.yml": text, "models/users.sql": users, **whole})
        daily, clicks = shop["daily"].model, shop["clicks"].model

        assert daily.tags == ("finance",)
        assert daily.timeseries == Timeseries("session_start", "day", Granularity.WEEK)
        assert (clicks.tags, clicks.prefer) == (("all",), ("amount desc",))
        assert clicks.timeseries == Timeseries("event_ts", "event_ts", Granularity.DAY)
        assert shop["sessions"].model.granularity is Granularity.HOUR
        assert shop["users"].model.materialization is Materialization.VIEW
        assert shop["all"].model.timeseries is None  # it is by no time, whatever cells others have

    @pytest.mark.parametrize(
        ("old", "new", "granularity"),
        [
            ("incremental: {}", "incremental: {enabled: true}", Granularity.DAY),
            ("incremental: {}", "incremental: {enabled: false}", None),
            ("granularity: day", "granularity: week", Granularity.WEEK),
            ("granularity: day", "granularity: week, week_start: sunday", Granularity.SUNDAY_WEEK),
        ],
    )
    def test_cells_are_as_declared(
        self, old: str, new: str, granularity: Granularity | None
    ) -> None:
        """A mapping enables `incremental`; weeks start on Monday by default, or on Sunday."""
        model = project(spoilt("models/daily.sql", old, new))["daily"].model

        assert (model.granularity if model.incremental else None) is granularity

    def test_the_models_limit_overrides_the_projects(self) -> None:
        """The model's backfill limit overrides the project's and is not part of the definition."""
        files = {**SHOP, "infold.yml": "backfill_limit: 30 days\n" + INFOLD}
        limited = {node.name: node.backfill_limit for node in project(files)}
        files["models/daily.sql"] = DAILY.replace("{}", "{backfill_limit: 1 week}")
        own = project(files)["daily"]

        assert limited == {"clicks": None, "sessions": None, "daily": 30 * DAY}
        assert own.backfill_limit == 7 * DAY
        assert own.fingerprint == project()["daily"].fingerprint


class TestTargets:
    """Where tables and the ledger are."""

    TWO = (
        INFOLD
        + "  prod: {warehouse: /data, protected: true, spark: {spark.sql.shuffle.partitions: 8}}\n"
    )

    def test_choosing_a_target(self, tmp_path: Path) -> None:
        """A target is chosen by the caller, else the default one, else the first; without targets
        there is one, named dev; an unknown one is an error that lists those that there are.
        """
        folder = write(tmp_path, {**SHOP, "infold.yml": self.TWO})

        assert load(folder).target.name == "dev"
        prod = load(folder, "prod").target
        assert (prod.warehouse, prod.protected) == ("/data", True)
        assert prod.spark == (("spark.sql.shuffle.partitions", "8"),)
        with pytest.raises(InfoldError) as caught:
            load(folder, "pord")
        assert (caught.value.slug, dict(caught.value.facts)["targets"]) == (
            "unknown-target",
            "dev, prod",
        )
        write(folder, {"infold.yml": "default_target: prod\n" + self.TWO})
        assert load(folder).target.name == "prod"
        write(folder, {"infold.yml": INFOLD.partition("targets:")[0]})
        assert load(folder).target == Target("dev")

    def test_what_targets_say(self, tmp_path: Path) -> None:
        """An environment is kept for two weeks after its last run, as long as a target says, or for
        ever. With a development target, all others are protected unless they declare otherwise.
        """
        more = "  long: {environment_ttl: 60 days, warehouse: a}\n  ever: {environment_ttl: never, "
        more += "warehouse: b, protected: false, environment_from_branch: true}\n"
        folder = write(tmp_path, {**SHOP, "infold.yml": INFOLD + more})
        plain = load(folder).targets
        write(folder, {"infold.yml": "dev_target: dev\n" + INFOLD + more})
        named = load(folder).targets

        ttl = {name: target.environment_ttl for name, target in plain.items()}
        assert ttl == {"dev": 14 * DAY, "long": 60 * DAY, "ever": None}
        branch = [name for name, target in plain.items() if target.environment_from_branch]
        assert branch == ["ever"]
        assert [name for name, target in plain.items() if target.protected] == []
        assert [name for name, target in named.items() if target.protected] == ["long"]

    def test_when_a_target_purges(self, tmp_path: Path) -> None:
        """At once, within a length of time, or only when somebody asks for it."""
        more = "".join(
            f"  t{at}: {{warehouse: w{at}, erasure_purge: {text}}}\n"
            for at, text in enumerate(["never", "at_once", "7 days"])
        )
        targets = load(write(tmp_path, {**SHOP, "infold.yml": INFOLD + more})).targets
        found = {name: target.erasure_purge for name, target in targets.items()}
        assert found == {"dev": None, "t0": None, "t1": 0, "t2": 7 * DAY}
        for text in ("soon", "0 days"):
            write(tmp_path, {"infold.yml": INFOLD + f"  t: {{erasure_purge: {text}}}\n"})
            with pytest.raises(InfoldErrors, match="bad-duration"):
                load(tmp_path)


class TestLoading:
    """Loading from the disk reports all mistakes at once and parses nothing twice."""

    def test_all_mistakes_are_raised_together(self, shop: Path) -> None:
        """All mistakes are raised together, in the order of `check`, with exit code 2."""
        write(shop, {"models/daily.sql": DAILY.replace("GROUP BY 1", "GROUP BY user_id")})
        with pytest.raises(InfoldErrors) as caught:
            load(shop)
        assert caught.value.exit_code == 2

        write(shop, {"models/clicks.sql": CLICKS.replace("url,", "ulr,")})
        with pytest.raises(InfoldErrors) as caught:
            load(shop)
        assert [error.slug for error in caught.value.errors] == [e.slug for e in check(shop)]
        assert caught.value.exit_code == 2
        assert str(caught.value).endswith("errors.")

    def test_a_cached_project_equals_a_parsed_one(self, shop: Path) -> None:
        """What is read from the cache equals the parsed project, with all that it declares; the
        cache does not contain the project's folder, so a moved project works.
        """
        cuts = "gap: 30 minutes, cuts: {midnight: UTC, campaign: [url], start_events: url = 'a'}"
        write(shop, {"models/sessions.sql": SESSIONS.replace("gap: 30 minutes", cuts)})
        first = load(shop)

        found = cache.load_kept(read_folder(shop))
        assert found is not None
        assert found["nodes"] == first.nodes
        assert load(shop) == first
        moved = shop.rename(shop.with_name("moved"))
        assert load(moved).root == moved.resolve()

    def test_any_change_of_a_file_is_noticed(self, shop: Path) -> None:
        """Any change of a file is noticed by content, not by time."""
        before = load(shop)
        write(shop, {"models/daily.sql": DAILY.replace("count(*) AS sessions", "count(*) AS n")})

        assert load(shop)["daily"].columns != before["daily"].columns
        (shop / "models/daily.sql").unlink()
        assert "daily" not in load(shop)

    def test_changed_code_reads_the_project_again(
        self, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """
        A changed file of any room of the package makes the cache invalid, but for processes that
        began before.
        """
        code = tmp_path / "package"
        write(code, {"__init__.py": "", "analysis/rules/ties.py": ""})
        monkeypatch.setattr(cache, "_PACKAGE", code)
        load(shop)
        before = (shop / FILE).read_bytes()
        os.utime(code / "analysis/rules/ties.py", (2e9, 2e9))

        load(shop)
        assert (shop / FILE).read_bytes() == before

        shutil.copytree(code, tmp_path / "of another process")
        monkeypatch.setattr(cache, "_PACKAGE", tmp_path / "of another process")
        load(shop)
        assert (shop / FILE).read_bytes() != before

    def test_a_cache_of_somebody_else_is_ignored(
        self, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A project may come from a stranger with a cache that says other things than its files,
        hooks for one; and any byte of this user's own may be another one.
        """
        first = load(shop)
        own = (shop / FILE).read_bytes()
        with monkeypatch.context() as other:
            other.setenv("INFOLD_CACHE", str(tmp_path / "other"))
            load(shop)
            strange = (shop / FILE).read_bytes()
        assert strange != own
        for other_bytes in (b"", b"{}", own[:-1], own.replace(b"clicks", b"cliqks", 1), strange):
            (shop / FILE).write_bytes(other_bytes)

            assert cache.load_kept(read_folder(shop)) is None
            assert load(shop) == first
        assert (shop / FILE).read_bytes() == own

    def test_a_read_only_folder_can_be_loaded(self, shop: Path) -> None:
        """A project in a folder that cannot be written is loaded without a cache; hidden files and
        Python's own folders are no models.
        """
        write(shop, {"models/.draft.sql": "nonsense", "models/__init__.py": ""})
        (shop / ".infold").write_text("in the way")

        assert [node.name for node in load(shop)] == ["clicks", "sessions", "daily"]


class TestSessions:
    """The kinds and cuts of sessions, as declared."""

    def query(self, mapping: str, items: str = "count(*) AS events") -> SessionsQuery:
        """The compiled query of sessions with this mapping."""
        sql = (
            f"---\nmaterialization: sessions\nsessions: {mapping}\n---\nSELECT {items} FROM clicks"
        )
        found = project({**SHOP, "models/sessions.sql": sql, "models/daily.sql": _VIEW})
        self.columns = found["sessions"].columns
        query = found["sessions"].query
        assert query is not None
        return query

    def test_by_identifier(self) -> None:
        """Sessions by identifier have the identifier as a
        column, and the user of one of their events.
        """
        found = self.query("{identifier: url, user: user_id, choose_user: last}")
        assert (found.user, found.owner_sql, found.gap) == ("session_identifier", "url", None)
        assert found.chosen_user == Output("user_id", "_user")
        assert [one.call for one in found.aggregates[-2:]] == ["last", "count"]
        assert self.columns == (
            "session_id",
            "session_identifier",
            "user_id",
            "session_start",
            "session_end",
            "events",
        )

    def test_several_identifiers(self) -> None:
        """Of several identifiers the first that is not NULL counts; events without any may be
        sessions by user, which may be an expression that outputs may use.
        """
        found = self.query(
            "{identifier: [url, event_id], user: user_id, without_identifier: {gap: 1 hour}}"
        )
        assert found.owner_sql == "coalesce(cast((url) AS string), cast((event_id) AS string))"
        assert found.fallback == Fallback("user_id", 60 * MINUTE)
        found = self.query("{user: lower(user_id), gap: 1 hour}", "user_identifier || '!' AS u")
        assert (found.user, found.owner_sql) == ("user_identifier", "lower(user_id)")

    def test_cuts(self) -> None:
        """Sessions can be cut at midnight, at campaigns and at events that begin a session."""
        plain = "{user: user_id, gap: 1 hour%s}"
        found = self.query(
            plain % ", max_length: 1 day, cuts: {midnight: UTC, "
            "start_events: url = '/', campaign: {columns: [url], nulls: change, direct: [x]}}"
        )
        assert found.cuts == (
            Midnight("UTC"),
            Campaign(("url",), Nulls.CHANGE, ("x",)),
            StartEvents("url = '/'"),
            MaxLength(24 * 60 * MINUTE),
        )
        assert found.cuts_within_islands
        assert self.query(plain % ", cuts: {}") == self.query(plain % "")


_VIEW = "---\nmaterialization: view\n---\nSELECT * FROM sessions"


OF_SPARK = """
string; BIGINT; decimal; decimal(18,2); DECIMAL( 38 , 38 ); numeric(5); varchar(10); timestamp_ntz
array<string>; map<string, array<int>>; struct<a: int, `b c`: struct<d: decimal(9,2)>>
struct<a int, b string>; struct<`Last, First`: string>; map<string, struct<`a<b`: int>>
struct<`x,``>y`: array<struct<`(`: int>>, z: int>
"""
OF_OTHERS = """
text; decimal(39,2); decimal(2,3); decimal(0); varchar; array; array<>; array<string, int>
array<text>; map<string>; struct<a>; struct<a: int,>; struct<`a, b: int>; array<string; list<string>
"""


@pytest.mark.parametrize(("texts", "known"), [(OF_SPARK, True), (OF_OTHERS, False)])
def test_types_are_those_of_spark(texts: str, *, known: bool) -> None:
    """Simple, sized and nested types are accepted in any case and spacing; types of other systems,
    and too wide or incomplete ones, are refused.
    """
    for text in texts.strip().replace("\n", "; ").split("; "):
        assert is_type(text) is known, text
    assert not is_type("")


GOOD = """
yyyy-MM-dd HH:mm:ss | yyyyMMddHHmmssSSS | dd/MMM/yyyy:HH:mm:ss Z | yyyy-MM-dd'T'HH:mm:ss.SSSSSSSXXX
d MMMM yyyy, h:mm a | yyyy-MM-dd[ HH:mm[:ss]] | yyyy-MM-dd HH:mm:ss VV | O yyyy | dd'th' MMMM yy
yyyy年MM月dd日 | yyyy-MM-dd'''T' | y! | G yyyy DDD | yyyy'MMMMM{#' | [yyyy | x yyyy
y ss.S' is left open
"""


def test_patterns_that_spark_reads() -> None:
    """As in the logs of web servers, and others."""
    for pattern in GOOD.strip().replace("\n", " | ").split(" | "):
        assert find_pattern_fault(pattern) == "", pattern


BAD = {
    "EEE, dd MMM yyyy": "E: Spark writes it and does not read it",
    "QQQ yyyy": "Q: Spark writes",
    "YYYY-MM-dd": "Y: Spark reads no weeks",
    "yyyy-'W'ww": "w: Spark reads no weeks",
    "uuuu-MM-dd": "u: Spark reads no weeks",
    "yyyy-MM-dd HH:mm:ss z": "z: names of zones as in PST mean several",
    "yyyyyyy": "yyyyyyy: it is y or yy or yyy or yyyy",
    "MMMMM": "MMMMM: it is M or MM or MMM or MMMM",
    "HHH": "HHH: it is H or HH",
    "VVV": "VVV: it is VV",
    "OO": "OO: it is O or OOOO",
    "yyyy-MM-ddTHH:mm": "T is no letter of a pattern",
    "n": "n is no letter of a pattern",
    "{yyyy}": "{ is reserved",
    "yyyy]": "a ] has no [ before it",
    "yyyy-MM-dd'T": "a quote has no end",
    "HHmmssSSSSSSSSS": "digits finer than microseconds",
    "--": "it has no letter",
    "'yyyy'": "it has no letter",
    "MMM d HH:mm:ss": "it has no year",
}


def test_patterns_that_spark_does_not_read() -> None:
    """Each says why."""
    for pattern, why in BAD.items():
        assert find_pattern_fault(pattern).startswith(why), pattern
