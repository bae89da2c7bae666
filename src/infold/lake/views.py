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

from infold.core.storages import NOT_PERMITTED
from infold.messages import catalog_errors, run_errors
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
Source = TypeVar("Source")
Wanted_contra = TypeVar("Wanted_contra", bound=SaidView, contravariant=True)


class Views(Protocol[Wanted_contra]):
    """The port behind which views are made: all of one namespace at a time."""

    def found(self, namespace: str) -> FoundViews:
        """What is there."""

    def change(
        self,
        namespace: str,
        views: Mapping[str, Wanted_contra],
        gone: Collection[str],
        present: FoundViews,
    ) -> Collection[str]:
        """
        Make views, or make them say something else, and take others away.

        Returns what was left as it was, because somebody else has just changed it.
        """


def refresh(
    views: Views[View],
    namespace: str,
    names: Callable[[], Collection[str]],
    sources: Callable[[Sequence[str]], Mapping[str, Source]],
    made: Callable[[str, Source], View],
    *,
    wanted: bool,
    only_new: bool,
) -> tuple[Sequence[str], Sequence[str]]:
    """
    Have exactly the views of tables of these ``names``: those that were taken, those that lost one.

    ``sources`` says where the tables of some names are; of each, ``made`` gives the view as it is
    to be. With ``only_new``, those that are there already are taken for right. Who wants none gets
    none from a catalog that does not let them look.
    """
    try:
        known = views.found(namespace)
    except InfoldError as error:
        if wanted or error.slug not in _NOT_SEEN:
            raise
        return (), ()
    shown = sorted(names())
    foreign = [name for name in shown if name in known.others]
    gone = [name for name in known.own if name not in shown]
    unsure = [
        name for name in shown if name not in known.others and not (only_new and name in known.own)
    ]
    changed = {}
    for name, source in sources(unsure).items():
        try:
            view = made(name, source)
        except InfoldError as error:
            if error.slug != run_errors.METADATA_MISSING:
                raise
            continue  # nobody can read the table: who builds it says so, and its view stays
        if name not in known.own or known.own[name].digest != view.digest:
            changed[name] = view
    if not changed and not gone:
        return foreign, ()
    left = views.change(namespace, changed, gone, known)
    lost = [name for name in gone if name not in left]
    return [*foreign, *(name for name in changed if name in left)], lost


def refuse_shared(place: str, namespace: str, names: Sequence[str], what: str) -> None:
    """Raise ``shared_namespace`` where another project has tables or views of these names."""
    if names:
        raise catalog_errors.shared_namespace(
            catalog=place, namespace=namespace, what=what, names=", ".join(names)
        )


class RefusedError(Exception):
    """A catalog did not change what it was asked to: it is no longer, or there is another one."""

    def __init__(self, named: InfoldError) -> None:
        super().__init__(str(named))
        self.named = named
