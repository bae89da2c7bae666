"""A mutant comes into the running program, and goes."""

from __future__ import annotations

from tests.mutants.listed import Mutant
from tests.mutants.swapped import REACHED, swapped, swaps, watched

from infold.core.interval import DAY, MINUTE, Interval, parse_duration


def mutant(old: str, new: str) -> Mutant:
    """A wrong change of the module of intervals."""
    return Mutant("interval", 1, "core/interval.py", old, new, "it is wrong")


WIDEN = mutant("self.start - before", "self.start + before")
"""A method of a class that this module imported."""


def test_who_holds_the_function_has_the_change() -> None:
    """A method of a class is another one, for all who imported it; afterwards it is as it was."""
    hour = Interval(60, 120)
    with swapped(swaps([WIDEN])[WIDEN.name]):
        wrong = hour.widen(10, 0)

    assert wrong == Interval(70, 120)
    assert hour.widen(10, 0) == Interval(50, 120)


def test_what_a_test_reaches() -> None:
    """A function that is called notes the mutants that change it, and does what it did."""
    REACHED.clear()
    with swapped(watched(swaps([WIDEN]))):
        parse_duration("1 day")
        untouched = {*REACHED}
        widened = Interval(60, 120).widen(10, 0)

    assert untouched == set()
    assert {*REACHED} == {WIDEN.name}
    assert widened == Interval(50, 120)


def test_what_is_no_function_is_not_changed() -> None:
    """A constant is part of what others imported: such a mutant is tried in a copy."""
    constant = mutant("DAY = 24 * HOUR", "DAY = 25 * HOUR")
    assert swaps([constant]) == {constant.name: ()}
    assert DAY == 24 * 60 * MINUTE
