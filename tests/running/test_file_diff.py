"""Listings compared with ingested files: only the files that differ are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.fresh import FreshLedger
from tests.planning.strips import EVENTS, FIRST
from tests.running.test_observe import SEEN, TAKEN, ledger_of, observer, taken

from infold.core.files import FileListing, FilesOutcome, IngestedFile, ListedFile, with_file_policy
from infold.core.formats import Format
from infold.core.model import Drift, Source
from infold.core.record import LISTED, Outcome
from infold.core.trace import Trace
from infold.running.file_changes import file_policy_fingerprint, is_gone
from infold.running.file_diff import listed_changes, listing_digest

PLAIN = Source("raw.clicks", Format.CSV, (), path="*.csv")
BY_POLICY = replace(PLAIN, on_drift=Drift.SET_ASIDE)
POLICY = file_policy_fingerprint(BY_POLICY)


@st.composite
def ingested(draw: st.DrawFn) -> list[IngestedFile]:
    """Files as they may have been ingested, some under a policy, some set aside or waiting."""
    paths = draw(st.sets(st.sampled_from("abcdef"), max_size=5))
    return [
        IngestedFile(
            id_,
            path,
            draw(st.sampled_from([0, 10])),
            draw(st.sampled_from(["1", "2"])) + draw(st.sampled_from(["", "|old", f"|{POLICY}"])),
            FIRST,
            next_due=draw(st.sampled_from([None, 5, 6])),
            rows=draw(st.sampled_from([0, 3])),
            waiting=draw(st.sampled_from([0, 1])),
            set_aside=draw(st.sampled_from([0, 2])),
        )
        for id_, path in enumerate(sorted(paths), 1)
    ]


LISTINGS = st.dictionaries(
    st.sampled_from("abcdefgh"), st.tuples(st.sampled_from([0, 10]), st.sampled_from(["1", "2"]))
)


class Book(FreshLedger):
    """A ledger with these files of one model."""

    def __init__(self, files: Sequence[IngestedFile]) -> None:
        super().__init__()
        self.acquire("r")
        self.begin_run("r", "run", 0, {})
        listed = [ListedFile(one.path, one.size, 0, one.fingerprint) for one in files]
        assert list(self.register_files("raw.clicks", listed).values()) == [one.id for one in files]
        self.begin_step("r", "s", 0, "events", "ingest", {})
        there = FilesOutcome("raw.clicks", tuple(files))
        trace = Trace("events", EVENTS.fingerprint)
        self.finish_step("s", Outcome("events", 1, trace, files=there))
        self.read: list[frozenset[int] | None] = []
        self.compared = 0

    def files(self, model: str, ids: Iterable[int] | None = None) -> Sequence[IngestedFile]:
        """The files; which were asked for is noted."""
        self.read.append(None if ids is None else frozenset(ids))
        return super().files(model, None if ids is None else self.read[-1])

    def file_versions(self, model: str) -> Mapping[str, tuple[str, int]]:
        """The versions of all files; that they were asked for is noted."""
        self.compared += 1
        return super().file_versions(model)


@given(ingested(), LISTINGS, st.sampled_from([PLAIN, BY_POLICY]), st.data())
def test_the_same_as_by_looking_at_every_file(
    files: list[IngestedFile],
    listing: dict[str, tuple[int, str]],
    source: Source,
    data: st.DataObject,
) -> None:
    """What differs is what a comparison of each file with all that is known of it finds."""
    young = data.draw(st.sets(st.sampled_from("abcdefgh")).map(lambda s: s - listing.keys()))
    found = [
        ListedFile(path, *values[:1], 0, values[1]) for path, values in sorted(listing.items())
    ]
    policy, known = file_policy_fingerprint(source), {file.path: file for file in files}

    made = listed_changes(Book(files), "events", source, found, sorted(young), as_of=5)

    present = [with_file_policy(file, known.get(file.path), policy) for file in found]
    here = {file.path: file for file in present}
    changed = [
        file
        for file in present
        if file.path not in known or known[file.path].fingerprint != file.fingerprint
    ]
    removed = [
        file for file in files if file.path not in young and is_gone(file, here.get(file.path))
    ]
    stays = [file for file in files if file not in removed]
    lost = [
        file
        for file in removed
        if (file.path not in here or not here[file.path].size) and (file.size or not here)
    ]
    added = [file for file in present if file.size and file.path not in known]
    assert list(made.changed) == changed
    assert list(made.removed) == removed
    assert list(made.replaced) == [file for file in changed if file.path in known]
    assert list(made.lost) == ([] if len(added) >= len(lost) else lost)
    assert list(made.due) == [f for f in stays if f.next_due is not None and f.next_due <= 5]
    assert made.unchanged == len(stays)


def test_only_the_files_that_differ_are_read() -> None:
    """Of a thousand files, one of them replaced and one deleted, two are read."""
    files = [IngestedFile(id_, f"{id_:04}", 10, "1", FIRST) for id_ in range(1, 1_001)]
    found = [ListedFile(file.path, 10, 0, "1") for file in files if file.id != 7]
    found[99] = replace(found[99], fingerprint="2")
    book = Book(files)

    made = listed_changes(book, "events", PLAIN, found, (), as_of=5)

    assert [file.id for file in made.removed] == [7, 101]
    assert book.read == [frozenset({7, 101})]


def test_a_listing_is_told_from_every_other() -> None:
    """A listing is known by its paths, its versions and its policy."""
    a, b = ListedFile("a", 1, 0, "1"), ListedFile("b", 1, 0, "2")
    listings = [(), (a,), (b,), (a, b), (replace(a, fingerprint="2"), b), (replace(a, path="a1"),)]

    found = {listing_digest(source, one) for source in (PLAIN, BY_POLICY) for one in listings}

    assert len(found) == 2 * len(listings)
    assert listing_digest(PLAIN, (a, b)) == listing_digest(PLAIN, (replace(a, modified_at=9), b))


class TestCompared:
    """A listing that was compared with the files of a model is not compared with them again."""

    def test_it_is_for_the_ledger_once_nothing_differs(self) -> None:
        """A run records a listing that has exactly the ingested files, none of which has yet to
        settle, and no other.
        """
        ledger = ledger_of(taken())
        same, other = observer(ledger, SEEN), observer(ledger)
        young = observer(ledger, SEEN, settling=("b.csv",))
        for looking in (same, other, young):
            looking.observe()

        assert same.compared.keys() == {LISTED.format("events")}
        assert other.compared == young.compared == {}

    def test_it_has_nothing_new_and_all_that_is_due(self) -> None:
        """With the recorded listing no file is compared; rows come due at their instant."""
        waits_for = TAKEN.next_due
        assert waits_for is not None
        book = Book([TAKEN])
        first = observer(book, SEEN)
        first.observe()
        book.remember_locations(first.compared)
        assert book.compared == 1

        again, due = (observer(book, SEEN, as_of=at).observe() for at in (FIRST, waits_for))
        other = observer(book, replace(SEEN, fingerprint="two")).observe()

        files = [seen.models["events"].files for seen in (again, due, other)]
        assert [bool(one) for one in files] == [False, True, True]
        assert [one.unchanged for one in files if one] == [1, 0]
        assert book.compared == 2


def test_a_listing_of_a_folder_is_that_of_its_files() -> None:
    """It has its files by path, as values, and the digest that these have."""
    listing = FileListing({"b": "7:5999", "a": "3:4000"})
    a, b = ListedFile("a", 3, 4, "3:4000"), ListedFile("b", 7, 5, "7:5999")

    assert ([*listing], listing[1], listing[:1], len(listing)) == ([a, b], b, (a,), 2)
    assert listing_digest(PLAIN, listing) == listing_digest(PLAIN, (a, b))
