"""What written tests name: the sources and models that there are, files that were given before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from infold.core.interval import parse_instant_text
from infold.core.model import Kind
from infold.core.project import Project
from infold.core.unit_tests import Arrival, Change, Delivery, Entry, Expectation, UnitTest
from infold.messages import unit_test_errors
from infold.messages.errors import InfoldError

SET_ASIDE_KINDS = (Kind.EVENTS, Kind.SESSIONS)
"""The kinds of models that set rows aside."""


@dataclass
class Names:
    """Whether what tests name is there; all that is wrong is noted in ``errors``."""

    project: Project
    errors: list[InfoldError] = field(default_factory=list)

    def test(self, test: UnitTest) -> UnitTest:
        """A test with the names as they are declared."""
        before = len(self.errors)
        files: dict[str, set[str]] = {}
        arrivals = [self._arrival(arrival, files) for arrival in test.arrivals]
        found = replace(test, arrivals=tuple(arrivals))
        if len(self.errors) == before:
            self._check_expected(found)
        return found

    def _arrival(self, arrival: Arrival, files: dict[str, set[str]]) -> Arrival:
        deliveries = [one for each in arrival.deliveries for one in self._delivery(each, files)]
        entries = [one for each in arrival.entries for one in self._entry(each)]
        expected = [one for each in arrival.expected for one in self._expectation(each)]
        return replace(
            arrival,
            deliveries=tuple(deliveries),
            entries=tuple(entries),
            expected=tuple(expected),
        )

    def _delivery(self, each: Delivery, files: dict[str, set[str]]) -> Iterator[Delivery]:
        every = [*self.project.sources, *(node.name for node in self.project)]
        name = spelled(each.of, every)
        if name is None:
            error = unit_test_errors.unknown_given(each.at, name=each.of, known=every)
            self.errors.append(error)
            return
        there = files.setdefault(name, set())
        if each.change is Change.ADD and each.file in there:
            error = unit_test_errors.file_there(each.at, name=name, file=each.file)
            self.errors.append(error)
        elif each.change is not Change.ADD and each.file not in there:
            error = unit_test_errors.no_such_file(
                each.at, name=name, file=each.file, files=sorted(there) or "none"
            )
            self.errors.append(error)
        there.add(each.file)
        if each.change is Change.DELETE:
            there.discard(each.file)
        yield replace(each, of=name)

    def _expectation(self, each: Expectation) -> Iterator[Expectation]:
        models = [node.name for node in self.project]
        name = spelled(each.model, models)
        if name is None and each.model.lower() == "set_aside":
            self.errors.append(unit_test_errors.aside_alone(each.at))
            return
        if name is None:
            error = unit_test_errors.unknown_expected(each.at, name=each.model, known=models)
            self.errors.append(error)
            return
        node = self.project[name].model
        if each.aside and node.kind not in SET_ASIDE_KINDS:
            self.errors.append(unit_test_errors.none_aside(each.at, name=name))
        if each.within is not None:
            if node.granularity is None:
                self.errors.append(unit_test_errors.no_cells(each.at, model=name))
            elif instant(each.within.text) is None:
                error = unit_test_errors.bad_cell(each.at, text=each.within.text, model=name)
                self.errors.append(error)
        yield replace(each, model=name)

    def _entry(self, each: Entry) -> Iterator[Entry]:
        models = [node.name for node in self.project if node.model.kind is Kind.SESSIONS]
        name = spelled(each.of, models)
        sessions = None if name is None else self.project[name].model.sessions
        if name is None or sessions is None:
            error = unit_test_errors.not_sessions(each.at, name=each.of, models=models or "none")
            self.errors.append(error)
            return
        owner = each.owner
        if sessions.fallback_gap is not None:
            if not each.kind:
                self.errors.append(unit_test_errors.unclear_owner(each.at, owner=owner))
            owner = f"{each.kind[:1]}{owner}"
        else:
            what = "identifier" if sessions.identifier else "user"
            if each.kind not in ("", what):
                error = unit_test_errors.other_owner(
                    each.at,
                    name=name,
                    what=f"one {what} each",
                    kind=f"an {each.kind}" if each.kind == "identifier" else "a user",
                )
                self.errors.append(error)
        yield replace(each, of=name, owner_in_ledger=owner)

    def _check_expected(self, test: UnitTest) -> None:
        """Nothing is expected, or decided by hand, of models whose rows are given."""
        for arrival in test.arrivals:
            made = [*((each.model, each.at) for each in arrival.expected)]
            made += [(each.of, each.at) for each in arrival.entries]
            for model, at in made:
                if model in test.given:
                    self.errors.append(unit_test_errors.given_and_made(at, name=model))


def spelled(name: str, known: list[str]) -> str | None:
    """A name as it is declared; case does not count."""
    return next((one for one in known if one.lower() == name.lower()), None)


def instant(text: str) -> int | None:
    """The instant that a text is; None for another text."""
    try:
        return parse_instant_text(text)
    except ValueError:
        return None
