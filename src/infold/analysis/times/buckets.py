"""
Buckets of time: ``window(ts, '15 minutes').start``.

``window(ts, size, step, offset)`` puts a row into every range ``[s, s + size)`` that contains its
time, where ``s`` is ``offset`` and any number of steps after 1970-01-01, in UTC. So ``s`` is
between ``ts - size`` (exclusive) and ``ts``, and ``s + size`` is the end. Without a step (or with
one as long as the range) there is one such ``s``: a floor. If a size that divides a day or an hour
starts with it, ``s`` is in the same day or hour as ``ts``. With shorter steps a row is in several
buckets. Rows without a time are in none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from infold.analysis.times.durations import length_of_text
from infold.analysis.times.shape import Shape
from infold.core.interval import DAY, HOUR, Granularity

_FEWEST, _MOST = 2, 4
"""How many arguments ``window`` takes."""

FIELDS = ("start", "end")
"""What a bucket is made of."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Stretches of ``size`` that start every ``step``; all in microseconds."""

    time: exp.Expr
    size: int
    step: int
    offset: int

    def started(self, shape: Shape) -> Shape:
        """The shape of a start, by that of the time."""
        aligned = self.step == self.size and self.offset % self.size == 0
        for unit, length in ((Granularity.HOUR, HOUR), (Granularity.DAY, DAY)):
            if aligned and self.size == length:
                return shape.floor(unit)
            if aligned and length % self.size == 0:
                return shape.in_same_cell(unit)
        found = shape.moved_by((1 - self.size, 0))
        for unit, length in ((Granularity.DAY, DAY), (Granularity.HOUR, HOUR)):
            if self.step % length == 0 and self.offset % length == 0:
                return replace(found, grain=unit)
        return found

    def ended(self, shape: Shape) -> Shape:
        """The shape of an end: a size after its start."""
        return self.started(shape).moved_by((self.size, self.size))


def is_bucket(node: exp.Expr) -> bool:
    """Whether a node is a call of ``window``."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def bucket_of(node: exp.Expr) -> Buckets | None:
    """The buckets that a call of ``window`` puts rows into; None where they are not known."""
    if not is_bucket(node) or not _FEWEST <= len(node.expressions) <= _MOST:
        return None
    time, *texts = node.expressions
    lengths = [_exact_length(text) for text in texts]
    size = lengths[0]
    step = lengths[1] if len(lengths) > 1 else size
    offset = lengths[2] if len(lengths) > 2 else 0
    if size is None or step is None or offset is None or not 0 < step <= size:
        return None
    return Buckets(time, size, step, offset)


def _exact_length(text: exp.Expr) -> int | None:
    """The length that a text says, ``15 minutes``; None for months, which are no one length."""
    if not isinstance(text, exp.Literal) or not text.is_string:
        return None
    span = length_of_text(text.name)
    return span[0] if span is not None and span[0] == span[1] else None


def makes_several(node: exp.Expr) -> bool:
    """Whether a call of ``window`` may make several rows of one: its steps are shorter."""
    if not is_bucket(node):
        return False
    found = bucket_of(node)
    return found is None or found.step != found.size


def change_of_bucket(node: exp.Expr) -> tuple[exp.Expr, Callable[[Shape], Shape]] | None:
    """What ``window(ts, …).start`` and ``.end`` do to the shape of the time."""
    if not isinstance(node, exp.Dot) or node.expression.name.lower() not in FIELDS:
        return None
    found = bucket_of(node.this.unnest())
    if found is None:
        return None
    starts = node.expression.name.lower() == "start"
    return found.time, found.started if starts else found.ended


def field_of(value: exp.Expr, name: str) -> exp.Dot:
    """A field of a value, which stays where it is in its own tree."""
    dot = exp.Dot(expression=exp.Identifier(this=name))
    dot.args["this"] = value
    return dot
