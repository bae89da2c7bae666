"""How a session rule is asked, and what is wrong with one, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import groupby
from random import Random

import pyarrow as pa
import pytest

from infold.core.functions import FunctionCode
from infold.spark.python_functions.author_code import FunctionFailedError
from infold.spark.python_functions.register import RuleCall
from infold.spark.verify.sessions_from_scratch import ReplayedRule

EVENTS = pa.list_(pa.struct({"time": pa.timestamp("us", "UTC"), "n": pa.int64()}))


def rule(body: str) -> FunctionCode:
    """A rule of the name ``ends`` with this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    files = (("functions/ends.py", f"def ends(events):\n{lines}\n"),)
    name = f"infold__python__ends__{abs(hash(body)):x}"
    return FunctionCode(name, "ends", ("BIGINT",), "ARRAY<BOOLEAN>", files, "session")


def begins(body: str, *sessions: list[tuple[int, int]]) -> list[list[bool]]:
    """Which events begin a session: of sessions of events, a minute and a number each."""
    column = pa.array(
        [[{"time": _minute(at), "n": n} for at, n in session] for session in sessions], EVENTS
    )
    code = rule(body)
    found: list[list[bool]] = RuleCall(code)(column).to_pylist()
    assert ReplayedRule(code)(column).to_pylist() == found
    return found


def _minute(at: int) -> datetime:
    return datetime(2024, 3, 1, 10, at, tzinfo=UTC)


def test_a_rule_begins_anew_with_each_session() -> None:
    """It counts from the first event of each session, and of each batch of them."""
    body = "for n, event in enumerate(events):\n    yield n == 2"
    assert begins(body, [(n, 0) for n in range(5)], [(0, 0)], []) == [
        [False, False, True, False, True],
        [False],
        [],
    ]


def test_events_of_one_instant_are_never_parted() -> None:
    """Where any of them begins a session, the first does, and the rule sees all of them again."""
    body = "last = 0\nfor event in events:\n    yield event['n'] < last\n    last = event['n']"
    assert begins(body, [(0, 3), (0, 1), (1, 4), (1, 2), (2, 1), (3, 5)]) == [
        [False, False, True, False, True, False]
    ]


@pytest.mark.parametrize("seed", range(40))
def test_it_is_what_asking_event_by_event_gives(seed: int) -> None:
    """The answers follow from the events of the session so far alone."""
    random = Random(seed)
    times = sorted(random.randrange(12) for _ in range(random.randrange(1, 20)))
    events = [(at, random.randrange(5)) for at in times]
    body = (
        "total = 0\nfor event in events:\n    yield total + event['n'] > 6\n    total += event['n']"
    )
    expected: list[bool] = []
    session: list[int] = []
    for _, group in groupby(events, key=lambda event: event[0]):
        numbers = [n for _, n in group]
        new = any(sum(session) + sum(numbers[: at + 1]) > 6 for at in range(len(numbers)))
        starts = bool(session) and new
        session = numbers if starts else session + numbers
        expected += [starts, *([False] * (len(numbers) - 1))]
    assert begins(body, events) == [expected]


WRONG = {
    "for event in events: yield 1": "yielded 1, which is no bool",
    "for event in events: yield None": "yielded None, which is no bool",
    "yield True\nfor event in events: yield False": "yielded twice for one event",
    "for event in list(events): yield False": "took the next event before it yielded",
    "for event in events:\n    yield False\n    return": "ended before the last event",
    "for event in events: yield event['nosuch']": "KeyError: 'nosuch'",
    "for event in events:\n    yield False\n    raise SystemExit(3)": "raised SystemExit: 3",
}


@pytest.mark.parametrize(("body", "what"), WRONG.items(), ids=WRONG.values())
def test_what_is_wrong_with_a_rule(body: str, what: str) -> None:
    """A rule that looks ahead, answers too often or not at all, or raises, is told of, by line."""
    column = pa.array([[{"time": _minute(at), "n": at} for at in range(3)]], EVENTS)
    with pytest.raises(FunctionFailedError) as error:
        RuleCall(rule(body))(column)
    assert what in str(error.value)
    assert '"file": "functions/ends.py"' in str(error.value)
