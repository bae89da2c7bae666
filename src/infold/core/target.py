"""Targets: where a project's tables and its ledger live, and how changes get there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from infold.core.engines import Engine
from infold.core.interval import DAY
from infold.core.model import OnLoss
from infold.core.object_store import Stores, is_url
from infold.core.storages import DEFAULT_STORAGE, STORAGE_SETTINGS, Catalog, CatalogType, Storage

if TYPE_CHECKING:
    from infold.core.hooks import Hook, Lineage

LONGEST_SCHEMA = 63
"""How long a name can be in PostgreSQL."""


class Apply(StrEnum):
    """How a changed definition comes to be used in a target."""

    AUTO = "auto"
    """The next run takes it from the files."""
    MANUAL = "manual"
    """`infold apply` does so; until then runs go on with the earlier one."""


class Publish(StrEnum):
    """When readers see what a run writes."""

    EACH = "each"
    """Each step's rows as soon as it is done."""
    TOGETHER = "together"
    """All rows of a run at one instant, once it has ended without a failure."""


class HideTechnical(StrEnum):
    """What readers have who are to see no technical columns."""

    VIEWS = "views"
    """A view of each table, in a namespace of its own."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a project's tables and its ledger live; relative paths are the project's."""

    name: str
    warehouse: str = "warehouse"
    ledger: str = "sqlite:///.infold/ledger.db"
    ledger_schema: str = ""
    """Where a ledger on a server is in its database; empty for a schema named after the project."""
    storage: Storage = DEFAULT_STORAGE
    catalog: Catalog = Catalog()
    stores: Stores = Stores()
    """How places in object stores are reached: of the warehouse, and of sources."""
    protected: bool = False
    engine: Engine = Engine()
    spark: tuple[tuple[str, str], ...] = ()
    """Settings of the Spark session (``spark.…``)."""
    apply: Apply = Apply.AUTO
    publish: Publish = Publish.EACH
    hide_technical: HideTechnical | None = None
    environment_ttl: int | None = 14 * DAY
    """How long an environment is kept after its last run; microseconds. None: for ever."""
    keep_old: int | None = 7 * DAY
    """How long tables are kept that others took the place of; microseconds. None: for ever."""
    environment_from_branch: bool = False
    """Whether commands work in the environment of git's branch, unless another is named."""
    hooks: tuple[Hook, ...] = ()
    """Who is told of the ends of its runs."""
    lineage: Lineage | None = None
    """Where events of lineage are sent; None: nowhere."""
    state_messages: bool = False
    """Whether each run says the state of its models in Snowplow's words; all targets are alike."""
    default: bool = True
    """Whether commands are about it that name no target."""

    @property
    def command(self) -> str:
        """How a command about it begins, as messages name it."""
        return "infold" if self.default else f"infold --target {self.name}"

    @property
    def in_store(self) -> bool:
        """Whether the warehouse is in an object store."""
        return is_url(self.warehouse)

    @property
    def by_folders(self) -> bool:
        """Whether its tables are found by their folders, and not by a catalog."""
        return STORAGE_SETTINGS[self.storage].by_folders

    @property
    def registers(self) -> bool:
        """Whether a metastore has the names of tables that are found by their folders."""
        return self.by_folders and self.catalog.type is CatalogType.HIVE

    @property
    def at_once(self) -> bool:
        """Whether several of its tables can get other names at one instant."""
        return self.catalog.at_once and not self.by_folders

    @property
    def on_destructive_change(self) -> OnLoss:
        """What happens to a change that destroys something, where a model does not say it."""
        guarded = self.protected or self.apply is Apply.MANUAL
        return OnLoss.ERROR if guarded else OnLoss.WARN
