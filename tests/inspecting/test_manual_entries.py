"""Manual entries: which sessions they mean, and what is recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import md5
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from tests.running.commands import said
from tests.running.standing_tables import commit, day, stand_up

from infold import api
from infold.cli import cli
from infold.core.interval import datetime_of
from infold.core.project import Project
from infold.core.record import Outcome, QuarantinedSession
from infold.core.sessions import ManualEntry
from infold.core.trace import Trace
from infold.lake.chosen_rows import filtered_rows
from infold.lake.iceberg.tables import IcebergLake
from infold.messages import errors

START, END = day(0).start, day(0).start + 1_000
LATER = day(1).start


def id_of(of: str, start: int = START) -> str:
    """The id of a session."""
    return md5(f"{of}|{start}".encode()).hexdigest()


def stored(monkeypatch: pytest.MonkeyPatch, **columns: list[Any]) -> None:
    """Let the sessions table hold these rows, all with one span."""
    number = len(columns["session_id"])
    spans = {
        "session_start": [datetime_of(START)] * number,
        "session_end": [datetime_of(END)] * number,
    }
    table = pa.table({**columns, **spans})

    def rows(
        _: IcebergLake, name: str, *, columns: list[str], where: str, limit: int | None = None
    ) -> pa.Table:
        assert name == "sessions"
        found = filtered_rows(table.cast(_known(table)), where)
        return found.select(columns)

    monkeypatch.setattr(IcebergLake, "rows", rows)


def _known(table: pa.Table) -> pa.Schema:
    """Types that a manifest table has, to be filtered as one."""
    plain = {field.name: field.type for field in table.schema}
    texts = {name: pa.string() for name, kind in plain.items() if not pa.types.is_timestamp(kind)}
    return pa.schema([(name, texts.get(name, kind)) for name, kind in plain.items()])


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Sessions by user and gap: Ann's is in the table, Bob's in quarantine."""
    project = stand_up(tmp_path / "shop")
    stored(monkeypatch, session_id=[id_of("ann")], user_id=["ann"])
    trace = Trace("sessions", "f", {"clicks": 1})
    held = (QuarantinedSession("bob", LATER, LATER + 5, 12),)
    commit(project, Outcome("sessions", 2, trace, committed=False, quarantined=held))
    return project


def by_identifier(root: Path, more: str = "") -> Project:
    """The same project with sessions by identifier."""
    project = stand_up(root)
    (root / "models" / "sessions.sql").write_text(
        "---\nmaterialization: sessions\n"
        f"sessions: {{identifier: url, user: user_id{more}}}\n---\n"
        "SELECT count(*) AS events, sum(amount) AS revenue FROM clicks\n"
    )
    return api.open_project(root, project.target.name)


def ledger_entries(project: Project) -> list[tuple[str, bool | None, int | None, int | None]]:
    """The entries of the ledger."""
    entries = api.ledger_of(project).entries("sessions")
    return [(one.owner, one.in_quarantine, one.start, one.end) for one in entries]


def add(
    shop: Project, *terms: str, users: Sequence[str] = (), held: bool = True, **more: Any
) -> tuple[ManualEntry, ...]:
    """Entries on sessions or users of the sessions model."""
    return tuple(
        api.add_quarantine_entries(
            shop, "sessions", terms=terms, users=users, in_quarantine=held, **more
        )
    )


class TestSelectingSessions:
    """A session is named by its id, an identifier, or a user."""

    def test_by_its_id_or_a_user(self, shop: Project) -> None:
        """An entry on a session has its user and span; one on a user has no span."""
        add(shop, id_of("ann"))
        add(shop, id_of("bob", LATER), held=False)
        add(shop, users=["eve", "o'hara"], force=True)

        assert ledger_entries(shop) == [
            ("ann", True, START, END),
            ("bob", False, LATER, LATER + 5),
            ("eve", True, None, None),
            ("o'hara", True, None, None),
        ]

    def test_unknown_ones_are_refused_and_nothing_is_written(self, shop: Project) -> None:
        """A misspelled user would quarantine nothing, unless it is forced or already named."""
        with pytest.raises(errors.InfoldError, match="has no session nonsense"):
            add(shop, id_of("ann"), "nonsense")
        with pytest.raises(errors.InfoldError, match="has no session of the user anne"):
            add(shop, users=["anne"])
        assert ledger_entries(shop) == []

        add(shop, users=["ann", "bob"])
        add(shop, users=["anne"], force=True)
        add(shop, users=["anne"], held=False)
        assert [(of, held) for of, held, *_ in ledger_entries(shop)] == [
            ("ann", True),
            ("bob", True),
            ("anne", True),
            ("anne", False),
        ]

    def test_a_reason_stays_when_the_same_entry_is_added_again(self, shop: Project) -> None:
        """An equal entry keeps the reason until another entry or another reason is added."""
        added = [
            *((True, "bot"), (True, ""), (False, "")),
            *((True, ""), (True, "test"), (True, "")),
        ]
        reasons = [add(shop, id_of("ann"), held=held, reason=why)[0].reason for held, why in added]

        assert reasons == ["bot", "bot", "", "", "test", "test"]

    def test_users_that_are_not_strings(
        self, shop: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Users of other types are named as Spark casts them to a string. To name a model without
        sessions is an error that lists those with sessions.
        """
        for user, of in ((42, "42"), (True, "true")):
            stored(monkeypatch, session_id=[id_of(of)], user_id=[user])
            add(shop, id_of(of))
        assert [of for of, *_ in ledger_entries(shop)] == ["42", "true"]
        for model in ("daily", "nonsense"):
            with pytest.raises(errors.InfoldError) as caught:
                api.add_quarantine_entries(shop, model, terms=["x"], in_quarantine=True)
            assert caught.value.exit_code == 2

    def test_an_identifier_is_all_its_sessions(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An identifier means all its sessions, the id of a session that one."""
        shop = by_identifier(tmp_path / "shop")
        columns = {"session_id": [id_of("k1")], "session_identifier": ["k1"], "user_id": ["ann"]}
        stored(monkeypatch, **columns)
        add(shop, "k1", id_of("k1"))
        assert ledger_entries(shop) == [("k1", True, None, None), ("k1", True, START, END)]
        with pytest.raises(errors.InfoldError, match="of the identifier k2"):
            add(shop, "k2")
        with pytest.raises(errors.InfoldError, match="by identifier"):
            add(shop, users=["ann"])

    def test_users_in_place_of_identifiers(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A prefix in the ledger tells users from identifiers, and commands do not show it."""
        shop = by_identifier(tmp_path / "shop", ", without_identifier: {gap: 30 minutes}")
        nobody = pa.array([None], pa.string())
        stored(monkeypatch, session_id=[id_of("uann")], session_identifier=nobody, user_id=["ann"])
        entries = add(shop, "k1", id_of("uann"), users=["bob"], force=True)
        assert [entry.owner for entry in entries] == ["k1", "ann", "bob"]
        assert ledger_entries(shop) == [
            ("ik1", True, None, None),
            ("uann", True, START, END),
            ("ubob", True, None, None),
        ]


class TestCommand:
    """``infold quarantine``."""

    def test_add_and_release_print_what_they_did(self, shop: Project) -> None:
        """Add and release print the sessions they mean and what happens next."""
        assert said(
            shop, "quarantine", "add", "sessions", id_of("ann"), "--user", "eve", "--force"
        ) == (
            "Into quarantine, in sessions:\n"
            "  the session of ann, 2024-03-01 to 2024-03-01 00:00:00.001000\n"
            "  all sessions of eve\n"
            "`infold run` takes them out of sessions.\n"
        )
        assert said(shop, "quarantine", "release", "sessions", "--user", "eve") == (
            "Released, in sessions:\n"
            "  all sessions of eve\n"
            "`infold run` brings them back to sessions.\n"
        )
        assert said(shop, "quarantine", "auto", "sessions", id_of("ann"), "--entry", "3") == (
            "Taken back, in sessions:\n"
            "  the session of ann, 2024-03-01 to 2024-03-01 00:00:00.001000\n"
            "  all sessions of eve\n"
            "`infold run` goes by quarantine_after again, in sessions.\n"
        )
        assert [held for _, held, *_ in ledger_entries(shop)] == [True, True, False, None, None]
        assert " auto " in said(shop, "quarantine", "list")
        text = said(shop, "quarantine", "auto", "sessions", "--entry", "9", code=2)
        assert text.startswith("unknown-entry: there is no manual entry 9 of sessions\n")

    def test_list_has_quarantined_sessions_and_entries(self, shop: Project) -> None:
        """Those in quarantine, and the entries, with a mark where no run has applied them."""
        said(shop, "quarantine", "add", "sessions", "--user", "eve", "--reason", "bot", "--force")
        text = said(shop, "quarantine", "list")
        assert id_of("bob", LATER) in text
        assert "all sessions of eve" in text
        assert "with the next run" in text
        found = json.loads(said(shop, "quarantine", "list", "--json"))
        assert [row["user_identifier"] for row in found["quarantined_sessions"]] == ["bob"]
        [entry] = found["entries"]
        keys = ("of", "action", "reason", "applied")
        assert [entry[key] for key in keys] == ["eve", "add", "bot", False]

    def test_the_reason_is_in_the_manifest_table(self, shop: Project) -> None:
        """That of the newest entry about a session, once a run has applied it."""
        book = api.ledger_of(shop)
        book.add_entries(
            "sessions",
            [
                ManualEntry(0, "bob", in_quarantine=False),
                ManualEntry(0, "bob", in_quarantine=True, reason="bot"),
                ManualEntry(0, "bob", in_quarantine=True, start=0, end=1, reason="another session"),
            ],
        )
        trace = Trace("sessions", "f", {"clicks": 1}, applied_entry=3)
        commit(shop, Outcome("sessions", 3, trace, committed=False), "r3")
        [row] = api.manifest(shop, "quarantined_sessions").to_pylist()
        assert row["reason"] == "by hand: bot"

    def test_the_user_of_a_head_is_that_of_its_row(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The user of a session's head is that of its row, as the table has it."""
        more = ", choose_user: last, quarantine_after: 3 days, keep: head"
        shop = by_identifier(tmp_path / "shop", more)
        columns = {"session_id": [id_of("k1")], "session_identifier": ["k1"], "user_id": ["ann"]}
        stored(monkeypatch, **columns)
        held = (
            QuarantinedSession("k1", START, LATER, 9, "bob", LATER),
            QuarantinedSession("k2", START, LATER, 9, "eve", LATER),
        )
        trace = Trace("sessions", "f", {"clicks": 1})
        commit(shop, Outcome("sessions", 2, trace, committed=False, quarantined=held))

        rows = api.manifest(shop, "quarantined_sessions").to_pylist()

        assert [(row["session_identifier"], row["user_identifier"]) for row in rows] == [
            ("k1", "ann"),
            ("k2", "eve"),
        ]

    def test_a_teardown_warns_of_losing_entries(self, shop: Project, tmp_path: Path) -> None:
        """A teardown says that manual entries are lost, because they are stored nowhere else. An
        empty list is one sentence; to add without naming a session is wrong usage.
        """
        empty = stand_up(tmp_path / "empty")
        assert said(empty, "quarantine", "list") == "No session is in quarantine.\n"
        assert "Name a SESSION" in said(empty, "quarantine", "add", "sessions", code=2)
        for user in ("ann", "bob"):
            said(shop, "quarantine", "add", "sessions", "--user", user)
        words = ("-C", str(shop.root), "teardown")

        asked = CliRunner().invoke(cli, words).output
        done = CliRunner().invoke(cli, (*words, "--yes")).output

        assert "with 2 manual entries for sessions" in asked
        assert "2 manual entries for sessions went with it." in done
