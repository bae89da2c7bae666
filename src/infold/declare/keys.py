"""Reading the keys of one mapping: each with its type, anything else an error with its place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from infold.core.interval import parse_duration, parse_instant_text
from infold.core.model import FOREVER
from infold.core.yaml_tree import Value
from infold.messages import findings
from infold.messages.errors import InfoldError, Spot

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
"""What a project, a model, a target and each part of a source's name look like."""

_MOST_UNKNOWN = 100
"""More of one mapping are no mistakes of typing, and finding the nearest of each takes its time."""

_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%\Z")


@dataclass(slots=True)
class Keys:
    """
    The entries of a mapping called ``where`` in messages (``source raw.clicks``).

    Asking for a key checks its type; a wrong one is noted in ``errors`` and counts as absent.
    """

    value: Value
    where: str
    errors: list[InfoldError]
    prefix: str = ""
    misspelled: frozenset[str] = frozenset()
    """Known keys that unknown ones seem to mean: these have no second error for being missing."""

    @property
    def entries(self) -> Mapping[str, Value]:
        """Key → value."""
        return self.value.entries

    def check(self, known: Collection[str], later: Collection[str] = ()) -> None:
        """Note the keys that are not known, the first of very many."""
        for key in islice((key for key in self.entries if key not in known), _MOST_UNKNOWN):
            at = self.value.keys[key]
            if key in later:
                self.errors.append(findings.later_key(at, key=key, where=self.where))
            else:
                self.errors.append(findings.unknown_key(at, key, self.where, known))
                self.misspelled |= findings.keys_meant_by(key, known)

    def key_at(self, key: str) -> Spot:
        """The place of the key itself, or of the mapping when it is absent."""
        return self.value.keys.get(key, self.value.at)

    def at(self, key: str) -> Spot:
        """The place of the key's value, or of the mapping when it is absent."""
        return self.entries[key].at if key in self.entries else self.value.at

    def full_name(self, key: str) -> str:
        """The key with those around it (``timeseries.granularity``)."""
        return f"{self.prefix}{key}"

    def missing(self, key: str, why: str = "") -> None:
        """Note that a key is needed, unless one that is there is wrong and seems to be it."""
        if key in self.misspelled:
            return
        self.errors.append(
            findings.missing_key(self.value.at, key=self.full_name(key), where=self.where, why=why)
        )

    def needless(
        self, keys: Iterable[str], where: str, todo: str = "", *, full: bool = False
    ) -> None:
        """Note those of some keys that are there and mean nothing; ``full``: by full names."""
        for key in keys:
            if key in self.entries:
                at, name = self.key_at(key), self.full_name(key) if full else key
                self.errors.append(findings.needless_key(at, key=name, where=where, todo=todo))

    def empty(self, key: str, form: str = "a list of names") -> None:
        """Note a list that has to have something in it."""
        at, name = self.at(key), self.full_name(key)
        self.errors.append(findings.wrong_type(at, key=name, wanted=form, found="empty"))

    def _of_kind(self, key: str, kinds: tuple[str, ...], form: str) -> Value | None:
        value = self.entries.get(key)
        if value is None or value.kind in kinds:
            return value
        self.errors.append(
            findings.wrong_type(value.at, key=self.full_name(key), wanted=form, found=value.kind)
        )
        return None

    def text(self, key: str) -> str | None:
        """A text that is not empty, without a null byte: neither a file nor Spark takes one."""
        value = self._of_kind(key, ("text",), "text")
        if value is None:
            return None
        if not value.text.strip() or "\0" in value.text:
            problem = "text with a null byte" if value.text.strip() else "empty"
            self.errors.append(
                findings.wrong_type(value.at, key=self.full_name(key), wanted="text", found=problem)
            )
            return None
        return value.text

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._of_kind(key, ("true or false",), "true or false")
        return default if value is None else value.text.lower() in ("true", "yes", "on")

    def count(self, key: str) -> int | None:
        """A whole number of at least one."""
        value = self._of_kind(key, ("a number",), "a whole number")
        if value is None:
            return None
        if not value.text.isdigit() or int(value.text) < 1:
            form = "a whole number of at least 1"
            error = findings.wrong_type(
                value.at, key=self.full_name(key), wanted=form, found=value.text
            )
            self.errors.append(error)
            return None
        return int(value.text)

    def length(self, key: str, default: int | None = None) -> int | None:
        """A length of time in microseconds."""
        value = self._of_kind(key, ("text", "a number"), "a length of time")
        if value is None:
            return default
        try:
            return parse_duration(value.text)
        except ValueError:
            self.errors.append(
                findings.bad_duration(value.at, key=self.full_name(key), value=value.text)
            )
            return default

    def percent(self, key: str) -> float | None:
        """A part of something, written ``10%``, as the number of percent."""
        text = self.text(key)
        match = None if text is None else _PERCENT.match(text)
        if match is not None and float(match[1]) <= 100:
            return float(match[1])
        if text is not None:
            self.errors.append(
                findings.bad_percent(self.at(key), key=self.full_name(key), value=text)
            )
        return None

    def span(self, key: str) -> int | None:
        """A length of time that is longer than nothing, in microseconds."""
        length = self.length(key)
        if length == 0:
            text = self.entries[key].text
            self.errors.append(
                findings.bad_duration(self.at(key), key=self.full_name(key), value=text)
            )
            return None
        return length

    def retain(self) -> int | None:
        """How long rows are kept after their time, in microseconds; ``forever`` is a length."""
        value = self.entries.get("retain")
        return FOREVER if value is not None and value.text == "forever" else self.span("retain")

    def instant(self, key: str) -> int | None:
        """A date or a time."""
        value = self._of_kind(key, ("text", "a date"), "a date")
        if value is None:
            return None
        try:
            return parse_instant_text(value.text)
        except ValueError:
            self.errors.append(
                findings.bad_instant(value.at, key=self.full_name(key), value=value.text)
            )
            return None

    def zone(self, key: str) -> str | None:
        """The name of a time zone (``Europe/Berlin``)."""
        from infold.planning.cron import time_zone

        text = self.text(key)
        if text is None:
            return None
        try:
            time_zone(text)
        except ValueError:
            self.errors.append(findings.bad_zone(self.at(key), key=key, text=text))
            return None
        return text

    def choice(self, key: str, known: Iterable[str], later: Collection[str] = ()) -> str | None:
        """One of a few words."""
        known = tuple(known)
        value = self.entries.get(key)
        if value is None:
            return None
        if value.kind in ("a list", "a mapping"):
            self._of_kind(key, ("text",), "one of " + ", ".join(known))
        elif value.text in known:
            return value.text
        elif value.text in later:
            self.errors.append(
                findings.later_value(
                    value.at, key=self.full_name(key), value=value.text, known=known
                )
            )
        else:
            self.errors.append(
                findings.bad_value(value.at, key=self.full_name(key), value=value.text, known=known)
            )
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, or one text alone."""
        value = self.entries.get(key)
        if value is not None and value.kind == "text":
            value = Value("a list", value.at, items=(value,))
            return tuple(item.text for item in value.items)
        value = self._of_kind(key, ("a list",), "a list of names")
        texts = []
        for item in value.items if value else ():
            if item.kind == "text":
                texts.append(item.text)
            else:
                error = findings.wrong_type(
                    item.at, key=f"{self.full_name(key)}[]", wanted="text", found=item.kind
                )
                self.errors.append(error)
        return tuple(texts)

    def section(self, key: str, where: str | None = None) -> Keys | None:
        """A mapping inside this one."""
        value = self._of_kind(key, ("a mapping",), "a mapping")
        if value is None:
            return None
        return Keys(value, where or self.where, self.errors, f"{self.full_name(key)}.")

    def sections(self, noun: str) -> Iterator[tuple[str, Keys]]:
        """Every entry of this mapping as a mapping called ``noun`` and its key."""
        for key in self.entries:
            section = self.section(key, f"{noun} {key}")
            if section is not None:
                section.prefix = ""
                yield key, section
