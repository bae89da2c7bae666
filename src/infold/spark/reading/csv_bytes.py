"""What the bytes of a CSV file say about how it can be read, in one look through all of them."""

from __future__ import annotations

import codecs
import re
from typing import BinaryIO, NamedTuple

_CHUNK = 1 << 22
_TRIMMED = bytes(range(0x21))
"""What Java trims."""


class Bytes(NamedTuple):
    """What is in a file."""

    quotes: bool
    """Whether there is a quote that is one."""
    returns: bool
    """Whether there is a CR."""
    odd: bool
    """Whether a line that is not blank is nothing once trimmed by Java; sought up to a quote."""
    text: bool
    """Whether all of it is UTF-8."""
    blank: bool
    """Whether it begins with a line of blanks."""


def bytes_of(file: BinaryIO, blanks: str, *, one_field: bool, quoted: bool = True) -> Bytes:
    """A look through a file; blanks are a value where a record has one field."""
    quotes = returns = odd = blank = False
    text, decoder = True, codecs.getincrementaldecoder("utf-8")()
    others = "\r\n" if one_field else f"{blanks}\r\n"
    shown = re.escape(bytes(code for code in _TRIMMED if chr(code) not in others))
    trimmed = re.compile(
        rb"(?:\A|[\r\n])[\x00-\x09\x0b\x0c\x0e-\x20]*[" + shown + rb"]"
        rb"[\x00-\x09\x0b\x0c\x0e-\x20]*+(?=[\r\n]|\Z)"
    )
    begins = rb"(?:\xef\xbb\xbf)?[\r\n]*[" + blanks.encode() + rb"]+(?:[\r\n]|\Z)"
    carried, chunk, first = b"", b"-", True
    while chunk:
        chunk = file.read(_CHUNK)
        if first:
            blank, first = re.match(begins, chunk) is not None, False
        quotes = quotes or (quoted and b'"' in chunk)
        returns = returns or b"\r" in chunk
        if not quotes and not odd:
            lines = carried + chunk
            end = max(lines.rfind(b"\n"), lines.rfind(b"\r")) + 1 if chunk else len(lines)
            odd = _suspect(lines[:end]) and trimmed.search(lines, 0, end) is not None
            carried = lines[end:]
            if carried.strip(_TRIMMED):
                carried = b"-"  # whatever follows, this line is not trimmed to nothing
        if text:
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError:
                text = False
    return Bytes(quotes, returns, odd, text, blank)


_CONTROLS = bytes(code for code in range(0x20) if chr(code) not in "\t\r\n")
_STARTS = (b"\n ", b"\n\t", b"\r ", b"\r\t")


def _suspect(lines: bytes) -> bool:
    """Whether one of the lines may have only characters that Java trims; that is rare."""
    if lines[:1] in (b" ", b"\t") or any(start in lines for start in _STARTS):
        return True
    return len(lines.translate(None, delete=_CONTROLS)) != len(lines)


def has_long_line(file: BinaryIO, least: int) -> bool:
    """Whether a line has as many bytes."""
    carried = b""
    while chunk := file.read(_CHUNK):
        lines, at = carried + chunk, 0
        while len(lines) - at >= least:
            end = max(lines.rfind(sign, at, at + least) for sign in (b"\n", b"\r"))
            if end < 0:
                return True
            at = end + 1
        carried = lines[at:]
    return False
