"""From where the pieces of an expanded text come, so that errors point to what a user wrote."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from infold.messages.errors import Spot


@dataclass(frozen=True, slots=True)
class Piece:
    """
    A piece of an expanded text, which stands for ``written[start:end]`` of the file.

    ``function`` is the file of the function that it comes from; empty for what the file itself
    says, word by word.
    """

    text: str
    start: int
    end: int
    function: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Origins:
    """An expanded text, piece by piece, and the text of the file as it was written."""

    written: str
    pieces: tuple[Piece, ...]
    starts: tuple[int, ...]
    """Where each piece begins in the expanded text."""

    @staticmethod
    def of(written: str, pieces: Sequence[Piece]) -> Origins:
        """The origins of a text that is made of these pieces."""
        found = tuple(piece for piece in pieces if piece.text)
        ends = accumulate((len(piece.text) for piece in found), initial=0)
        return Origins(written, found, tuple(ends)[:-1])

    @property
    def text(self) -> str:
        """The expanded text."""
        return "".join(piece.text for piece in self.pieces)

    def spot(self, file: str, start: int, end: int) -> Spot:
        """The place in the file of ``text[start:end]``; in a function, that of the call."""
        first, last = self._piece(start), self._piece(max(start, end - 1))
        begin = first.start if first.function else self._written(start)
        stop = last.end if last.function else self._written(max(start, end - 1)) + 1
        found = spot_in(file, self.written, begin, max(begin + 1, stop))
        return replace(found, function=first.function) if first.function else found

    def _piece(self, at: int) -> Piece:
        return self.pieces[max(0, bisect_right(self.starts, at) - 1)]

    def _written(self, at: int) -> int:
        i = max(0, bisect_right(self.starts, at) - 1)
        piece = self.pieces[i]
        return min(piece.start + at - self.starts[i], max(piece.start, piece.end - 1))


def spot_in(file: str, source: str, start: int, end: int) -> Spot:
    """The place in a file of ``source[start:end]``, with its line and what to underline."""
    begin = source.rfind("\n", 0, start) + 1
    stop = source.find("\n", start)
    text = source[begin : len(source) if stop < 0 else stop].rstrip("\r")
    width = max(1, min(end, begin + len(text)) - start)
    return Spot(file, source.count("\n", 0, start) + 1, start - begin + 1, text, width)
