"""
Views for those who read tables: each has the columns of a table but infold's own.

The views of a namespace ``shop`` are in ``shop_views``, by the names of its tables. No engine is
needed to make one. What a view says has a digest: so whether one is right is seen at once. What
anybody else made in that namespace is told apart and left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from infold.core.catalogs import NOT_PERMITTED
from infold.messages.errors import InfoldError

SUFFIX = "_views"
"""After the name of a namespace: that of the views of its tables."""

_NOT_SEEN = (NOT_PERMITTED, "catalog-failed")
"""Errors of a catalog that does not show what views it has."""


class SaidView(Protocol):
    """A view as it is to be."""

    @property
    def digest(self) -> str:
        """By which it is known whether a view that is there is this one."""


@dataclass(frozen=True, slots=True)
class FoundView:
    """A view that infold made: what it says, where that stands, and what a server gave of it."""

    digest: str
    location: str = ""
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class FoundViews:
    """What is in a namespace: infold's views, and the names that anything else has."""

    own: Mapping[str, FoundView]
    others: Collection[str] = ()
    there: bool = True
    """Whether there is such a namespace."""


View = TypeVar("View", bound=SaidView)
Wanted_contra = TypeVar("Wanted_contra", bound=SaidView, contravariant=True)


class Views(Protocol[Wanted_contra]):
    """The port behind which views are made: all of one namespace at a time."""

    def found(self, namespace: str) -> FoundViews:
        """What is there."""

    def change(
        self,
        namespace: str,
        wanted: Mapping[str, Wanted_contra],
        gone: Collection[str],
        found: FoundViews,
    ) -> Collection[str]:
        """
        Make views, or make them say something else, and take others away.

        Returns what was left as it was, because somebody else has just changed it.
        """


def look(views: Views[View], namespace: str, *, wanted: bool) -> FoundViews | None:
    """What is there; None for who wants no views, from a catalog that does not let them look."""
    try:
        return views.found(namespace)
    except InfoldError as error:
        if wanted or error.slug not in _NOT_SEEN:
            raise
        return None


def update(
    views: Views[View],
    namespace: str,
    found: FoundViews,
    names: Collection[str],
    made: Callable[[Sequence[str]], Mapping[str, View]],
    *,
    only_new: bool,
) -> tuple[Sequence[str], Sequence[str]]:
    """
    Have exactly the views of these names; the names that were taken, and those that lost a view.

    ``made`` gives the views as they are to be, of tables that can be read. With ``only_new``, those
    that are there already are taken for right.
    """
    taken = [name for name in names if name in found.others]
    gone = [name for name in found.own if name not in names]
    unsure = [
        name for name in names if name not in found.others and not (only_new and name in found.own)
    ]
    wanted = {
        name: view
        for name, view in made(unsure).items()
        if name not in found.own or found.own[name].digest != view.digest
    }
    if not wanted and not gone:
        return taken, ()
    left = views.change(namespace, wanted, gone, found)
    lost = [name for name in gone if name not in left]
    return [*taken, *(name for name in wanted if name in left)], lost


class RefusedError(Exception):
    """A catalog did not change what it was asked to: it is no longer, or there is another one."""

    def __init__(self, named: InfoldError) -> None:
        super().__init__(str(named))
        self.named = named
