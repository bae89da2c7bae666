"""What became of a session, from tables drawn before and after each version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from infold.core.trace import Version
from infold.inspecting.event_batches import Event, event_batches
from infold.inspecting.session_history import (
    Read,
    Session,
    Verb,
    VersionChange,
    changes,
    differing,
    session_changes,
    since,
    verb,
)


def session(text: str) -> Session:
    """``10-20 3 v1``: from 10 to 20, 3 events, written by version 1; ``n=2`` is a value."""
    span, *words = text.split()
    start, _, end = span.partition("-")
    values = dict(word.split("=") for word in words if "=" in word)
    events = next((int(word) for word in words if word.isdigit()), None)
    version = next((int(word[1:]) for word in words if word[0] == "v" and word[1:].isdigit()), 1)
    return Session(f"at {start}", int(start), int(end or start), version, events, values)


def table(text: str) -> tuple[Session, ...]:
    """Sessions, a comma between them; a dash for none."""
    return tuple(session(part) for part in text.split(",")) if text != "-" else ()


def version(number: int, *, whole: bool = False) -> Version:
    """A version of the table."""
    return Version("visits", number, number, f"s{number}", f"r{number}", number, 0, whole)


class Table:
    """A table of one user's sessions as each of its versions held it; ``?`` is not kept."""

    def __init__(self, *drawn: str, whole: Sequence[int] = (1,)) -> None:
        self.drawn = drawn
        self.versions = [version(at, whole=at in whole) for at in range(1, len(drawn) + 1)]
        self.reads = 0

    def at(self, version: Version, start: int, end: int) -> tuple[Session, ...] | None:
        """What overlaps a span."""
        self.reads += 1
        drawn = self.drawn[version.number - 1]
        if drawn == "?":
            return None
        return tuple(one for one in table(drawn) if one.start <= end and one.end >= start)

    def lost(self, version: Version, start: int, end: int) -> bool:
        """Whether a session of about that time is not in the table any more."""
        del start, end
        if version.number == 1 or "?" in self.drawn[version.number - 2 : version.number]:
            return version.whole
        before, after = (
            {one.key for one in table(self.drawn[at])}
            for at in (version.number - 2, version.number - 1)
        )
        return version.whole or bool(before - after)

    def told(self, start: int, end: int) -> list[str]:
        """What happened, a line for each change."""
        found, blind = changes(self.versions, self.at, self.lost, start, end)
        lines = []
        for change in found:
            was, now = (
                " ".join(f"{one.start}-{one.end}" for one in part or ())
                for part in (change.before, change.after)
            )
            lines.append(" ".join(f"{change.version.number} {verb(change)} {was} > {now}".split()))
        return [*lines, *(["what was before is not known"] if blind else [])]


class TestWords:
    """One word for what a run did."""

    @pytest.mark.parametrize(
        ("before", "after", "word"),
        [
            ("-", "10-20", Verb.CREATED),
            ("10-20", "10-30", Verb.EXTENDED),
            ("10-20", "5-20", Verb.EXTENDED),
            ("10-20 3", "10-20 4", Verb.EXTENDED),
            ("10-20, 30-40", "10-40", Verb.MERGED),
            ("10-40", "10-20, 30-40", Verb.SPLIT),
            ("10-40, 50-60", "10-20, 30-60", Verb.REGROUPED),
            ("10-30", "10-20", Verb.SHORTENED),
            ("10-20 4", "10-20 3", Verb.SHORTENED),
            ("10-30", "20-40", Verb.MOVED),
            ("10-20 sum=1", "10-20 sum=2", Verb.RECOMPUTED),
            ("10-20 session_number=1", "10-20 session_number=2", Verb.RENUMBERED),
            ("10-20 session_number=1 sum=1", "10-20 session_number=2 sum=2", Verb.RECOMPUTED),
            ("10-20", "-", Verb.REMOVED),
        ],
    )
    def test_a_word_for_each_change(self, before: str, after: str, word: Verb) -> None:
        """By how many there were and are, by their spans, by their values."""
        assert verb(VersionChange(version(2), table(before), table(after))) is word

    def test_a_whole_table_built_anew(self) -> None:
        """What comes out as it was is neither extended nor recomputed."""
        same = VersionChange(version(2, whole=True), table("10-20 3"), table("10-20 3 v2"))

        assert verb(same) is Verb.REBUILT

    def test_what_it_was_is_not_kept(self) -> None:
        """Then all that is known is who wrote it."""
        assert verb(VersionChange(version(2), None, table("10-20"))) is Verb.WRITTEN

    def test_columns_that_differ(self) -> None:
        """Those that only one of both has count too."""
        assert differing(session("1-2 a=1 b=1"), session("1-2 a=1 b=2 c=3")) == ("b", "c")


class TestWalk:
    """Back through the versions of a table."""

    def test_a_session_that_grows(self) -> None:
        """Versions that wrote another user's sessions, or another day's, are passed over."""
        drawn = Table("10-20 v1", "10-20 v1", "10-30 v3", "10-30 v3, 90-95 v4")

        assert drawn.told(10, 30) == ["1 created > 10-20", "3 extended 10-20 > 10-30"]
        assert drawn.reads < 8

    def test_the_story_of_all_that_went_into_it(self) -> None:
        """A bridge merges two sessions: both are followed to where they began."""
        drawn = Table("10-20 v1", "10-20 v1, 60-70 v2", "10-20 v1, 55-70 v3", "10-70 v4")

        assert drawn.told(10, 70) == [
            "1 created > 10-20",
            "2 created > 60-70",
            "3 extended 60-70 > 55-70",
            "4 merged 10-20 55-70 > 10-70",
        ]

    def test_the_other_half_of_a_split(self) -> None:
        """Is shown, though it lies outside of what was asked for."""
        drawn = Table("10-70 v1", "10-20 v2, 60-70 v2", "10-20 v2, 60-80 v3")

        assert drawn.told(10, 20) == ["1 created > 10-70", "2 split 10-70 > 10-20 60-70"]

    def test_two_sessions_of_one_version_are_two_changes(self) -> None:
        """What shares no instant has nothing to do with each other."""
        drawn = Table("10-20 v1, 40-50 v1", "10-50 v2")

        assert drawn.told(10, 50) == [
            "1 created > 10-20",
            "1 created > 40-50",
            "2 merged 10-20 40-50 > 10-50",
        ]

    def test_a_session_that_went_and_came_back(self) -> None:
        """A row that is gone says nothing; the cells that lost rows do."""
        drawn = Table("10-20 v1", "-", "-", "10-20 v4")

        assert drawn.told(10, 20) == [
            "1 created > 10-20",
            "2 removed 10-20 >",
            "4 created > 10-20",
        ]

    def test_where_snapshots_are_gone(self) -> None:
        """The row says who wrote it, and no more is claimed."""
        drawn = Table("?", "?", "10-20 v2", "10-30 v4")

        assert drawn.told(10, 30) == [
            "2 written > 10-20",
            "4 extended 10-20 > 10-30",
            "what was before is not known",
        ]

    def test_a_table_that_was_built_anew(self) -> None:
        """Goes on behind it: what was before is compared as anywhere."""
        drawn = Table("10-20 v1", "10-20 v2", "10-30 v3", whole=(1, 2))

        assert drawn.told(10, 30) == [
            "1 created > 10-20",
            "2 rebuilt 10-20 > 10-20",
            "3 extended 10-20 > 10-30",
        ]

    def test_nothing_was_ever_there(self) -> None:
        """A session that was too long from the first has no history in its table."""
        assert Table("10-20 v1", "10-20 v1").told(50, 60) == []


class TestQuarantine:
    """Events that a table's sessions do not cover, though they had been read."""

    FOUND = (
        VersionChange(version(1), (), table("10-20 v1")),
        VersionChange(version(2), table("10-20 v1"), ()),
        VersionChange(version(3), (), table("10-20 v3")),
    )
    READ: Mapping[int, Read] = {1: {"clicks": 1}, 2: {"clicks": 4}, 3: {"clicks": 6}}
    BEFORE: Mapping[int, Read] = {2: {"clicks": 3}, 3: {"clicks": 5}}

    def test_events_that_stayed_were_in_it(self) -> None:
        """They are there now and were there then; so the session went into it and came back."""
        told = session_changes(self.FOUND, self.READ, self.BEFORE, [Event(12, 1, input="clicks")])

        assert [deed.verb for deed in told] == ["created", "quarantined", "returned"]

    def test_events_that_came_later_were_not(self) -> None:
        """Those of before are gone, so the session was removed, and another one created."""
        told = session_changes(self.FOUND, self.READ, self.BEFORE, [Event(12, 6, input="clicks")])

        assert [deed.verb for deed in told] == ["created", "removed", "created"]
        assert since(told, 10, 20) == told[2:]

    def test_without_a_quarantine_nothing_is_in_it(self) -> None:
        """No events are given then."""
        assert [deed.verb for deed in session_changes(self.FOUND, self.READ, self.BEFORE)] == [
            "created",
            "removed",
            "created",
        ]


class TestArrivals:
    """Events by what brought them."""

    EVENTS = (Event(10, 1, 1), Event(12, 1, 2), Event(14, 1, 3), Event(16, 1, 3), Event(11, 3, 4))
    PATHS: Mapping[int, str] = {1: "a", 2: "b", 3: "c", 4: "d"}

    def test_by_version_with_a_few_of_the_files(self) -> None:
        """Most events first; what came after the session was made is late."""
        first, second = event_batches(
            self.EVENTS, map(version, (1, 2, 3)), self.PATHS, made=1, known=True
        )

        assert (first.events, first.first, first.last, first.late) == (4, 10, 16, False)
        assert (first.files, first.more) == (("c", "a"), 1)
        assert (second.version, second.late, second.files) == (version(3), True, ("d",))

    def test_what_cannot_be_told(self) -> None:
        """Whether the oldest are late, where nobody knows when the session was made."""
        first, second = event_batches(
            self.EVENTS, map(version, (1, 2, 3)), self.PATHS, made=1, known=False
        )

        assert (first.late, second.late) == (None, True)

    def test_an_input_that_was_built_anew(self) -> None:
        """Its rows no longer say when they first came."""
        (group,) = event_batches(
            [Event(10, 2)], [version(1), version(2, whole=True)], {}, made=1, known=True
        )

        assert group.rebuilt
        assert group.late is None

    def test_rows_that_say_nothing(self) -> None:
        """A table that is recomputed cell by cell keeps no versions in its rows."""
        (group,) = event_batches([Event(10), Event(11)], [], {}, made=1, known=True)

        assert (group.version, group.events, group.late) == (None, 2, None)
