"""The history of a session, from tables drawn before and after each version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from infold.core.trace import Version
from infold.inspecting.session_history import (
    Event,
    InputVersions,
    Session,
    Verb,
    VersionChange,
    changes_in_span,
    changes_since,
    differing_columns,
    event_batches,
    session_changes,
    verb_of,
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

    def change_lines(self, start: int, end: int) -> list[str]:
        """What happened, a line for each change."""
        found, blind = changes_in_span(self.versions, self.at, self.lost, start, end)
        lines = []
        for change in found:
            was, now = (
                " ".join(f"{one.start}-{one.end}" for one in part or ())
                for part in (change.before, change.after)
            )
            lines.append(
                " ".join(f"{change.version.number} {verb_of(change)} {was} > {now}".split())
            )
        return [*lines, *(["what was before is not known"] if blind else [])]


class TestWords:
    """One word for what a run did to a session."""

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
        """It follows from the numbers of sessions, their spans and their values."""
        assert verb_of(VersionChange(version(2), table(before), table(after))) is word

    def test_changes_without_a_state_to_compare(self) -> None:
        """A rebuild that leaves it is one; without the state before only the writer is known."""
        same = VersionChange(version(2, whole=True), table("10-20 3"), table("10-20 3 v2"))

        assert verb_of(same) is Verb.REBUILT
        assert verb_of(VersionChange(version(2), None, table("10-20"))) is Verb.WRITTEN
        assert differing_columns(session("1-2 a=1 b=1"), session("1-2 a=1 b=2 c=3")) == ("b", "c")


class TestWalk:
    """The search goes back through the versions of a table."""

    def test_a_session_that_grows(self) -> None:
        """One change for each version that changed it; other versions are skipped."""
        drawn = Table("10-20 v1", "10-20 v1", "10-30 v3", "10-30 v3, 90-95 v4")

        assert drawn.change_lines(10, 30) == ["1 created > 10-20", "3 extended 10-20 > 10-30"]
        assert drawn.reads < 8

    @pytest.mark.parametrize(
        ("drawn", "span", "changes"),
        [
            (
                "10-20 v1 | 10-20 v1, 60-70 v2 | 10-20 v1, 55-70 v3 | 10-70 v4",
                (10, 70),
                (
                    "1 created > 10-20; 2 created > 60-70; 3 extended 60-70 > 55-70; "
                    "4 merged 10-20 55-70 > 10-70"
                ),
            ),
            (  # the other half is shown, though it is outside the span asked for
                "10-70 v1 | 10-20 v2, 60-70 v2 | 10-20 v2, 60-80 v3",
                (10, 20),
                "1 created > 10-70; 2 split 10-70 > 10-20 60-70",
            ),
            (  # two that share no instant
                "10-20 v1, 40-50 v1 | 10-50 v2",
                (10, 50),
                "1 created > 10-20; 1 created > 40-50; 2 merged 10-20 40-50 > 10-50",
            ),
            (  # found by the cells that lost rows in a version
                "10-20 v1 | - | - | 10-20 v4",
                (10, 20),
                "1 created > 10-20; 2 removed 10-20 >; 4 created > 10-20",
            ),
            (  # the row says who wrote it, and nothing more is claimed
                "? | ? | 10-20 v2 | 10-30 v4",
                (10, 30),
                "2 written > 10-20; 4 extended 10-20 > 10-30; what was before is not known",
            ),
            ("10-20 v1 | 10-20 v1", (50, 60), ""),  # one that was too long from the beginning
            (  # the history before a rebuild is compared as anywhere else
                "10-20 v1 | 10-20 v2 rebuilt | 10-30 v3",
                (10, 30),
                "1 created > 10-20; 2 rebuilt 10-20 > 10-20; 3 extended 10-20 > 10-30",
            ),
        ],
        ids=["merged", "split", "two", "again", "expired", "never stored", "rebuilt"],
    )
    def test_sessions_are_followed_to_their_beginnings(
        self, drawn: str, span: tuple[int, int], changes: str
    ) -> None:
        """Each change of any session that one of a span came from is found, once and in order."""
        versions = drawn.split(" | ")
        whole = [at for at, text in enumerate(versions, 1) if at == 1 or "rebuilt" in text]
        assert "; ".join(Table(*versions, whole=whole).change_lines(*span)) == changes


class TestQuarantine:
    """Events that the table's sessions do not cover, though they had been read."""

    FOUND = (
        VersionChange(version(1), (), table("10-20 v1")),
        VersionChange(version(2), table("10-20 v1"), ()),
        VersionChange(version(3), (), table("10-20 v3")),
    )
    READ: Mapping[int, InputVersions] = {1: {"clicks": 1}, 2: {"clicks": 4}, 3: {"clicks": 6}}
    BEFORE: Mapping[int, InputVersions] = {2: {"clicks": 3}, 3: {"clicks": 5}}

    @pytest.mark.parametrize(
        ("events", "verbs"),
        [
            ([Event(12, 1, input="clicks")], ["created", "quarantined", "returned"]),
            ([Event(12, 6, input="clicks")], ["created", "removed", "created"]),
            ([], ["created", "removed", "created"]),
        ],
        ids=["still there", "came later", "no quarantine"],
    )
    def test_what_happened(self, events: Sequence[Event], verbs: list[str]) -> None:
        """Events that were read and still exist mean a quarantine; if they are gone, a removal."""
        changes = session_changes(self.FOUND, self.READ, self.BEFORE, events)

        assert [change.verb for change in changes] == verbs
        assert verbs[1] == "quarantined" or changes_since(changes, 10, 20) == changes[2:]


class TestArrivals:
    """Events are grouped by what brought them."""

    EVENTS = (Event(10, 1, 1), Event(12, 1, 2), Event(14, 1, 3), Event(16, 1, 3), Event(11, 3, 4))
    PATHS: Mapping[int, str] = {1: "a", 2: "b", 3: "c", 4: "d"}

    def test_arrivals_by_version(self) -> None:
        """With some of the files, most events first; later ones are late."""
        first, second = event_batches(
            self.EVENTS, map(version, (1, 2, 3)), self.PATHS, made=1, known=True
        )

        assert (first.events, first.first, first.last, first.late) == (4, 10, 16, False)
        assert (first.files, first.more_files) == (("c", "a"), 1)
        assert (second.version, second.late, second.files) == (version(3), True, ("d",))

    def test_lateness_that_is_unknown(self) -> None:
        """For the oldest events of an unknown first version, and rows of a rebuilt input."""
        first, second = event_batches(
            self.EVENTS, map(version, (1, 2, 3)), self.PATHS, made=1, known=False
        )
        assert (first.late, second.late) == (None, True)
        (group,) = event_batches(
            [Event(10, 2)], [version(1), version(2, whole=True)], {}, made=1, known=True
        )
        assert (group.rebuilt, group.late) == (True, None)
        (group,) = event_batches([Event(10), Event(11)], [], {}, made=1, known=True)
        assert (group.version, group.events, group.late) == (None, 2, None), "it was recomputed"
