"""
The options that several commands have, each declared once, and the values that they make together.

``build_options`` says what `plan` and `run` bring up to date, ``rebuild`` what `restate` and
`backbuild` build again: a command gets one value for all of these options.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infold.cli import completing

if TYPE_CHECKING:
    from infold.core.hooks import Sinks
    from infold.core.plan import PlanOptions
    from infold.core.project import Project


Command = Callable[..., Any]

_terms: Any = {"multiple": True, "metavar": "TERM", "shell_complete": completing.terms}

as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
select = click.option(
    "--select",
    "-s",
    **_terms,
    help="Only these models: a name, a glob, tag:NAME; +m with all it reads, m+ with all that "
    "read it. Repeatable.",
)
exclude = click.option(
    "--exclude",
    "-x",
    **_terms,
    help="Not these models; terms as above.",
)
as_of = click.option(
    "--as-of",
    metavar="TIME",
    help="Take rows dated up to this instant for come due; now by default.",
)
start = click.option(
    "--start", "--event-time-start", "start", metavar="TIME", help="Only cells from here on."
)
end = click.option(
    "--end",
    "--event-time-end",
    "end",
    metavar="TIME",
    help="Only cells before this (it is not included).",
)
batch_size = click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Build at most N cells in one commit; overrides the models' own batch_size.",
)
per_partition = click.option(
    "--per-partition", is_flag=True, help="Build each cell by itself: --batch-size 1."
)
wait = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="How long to wait for another run of this target to end; by default not at all.",
)
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
fail_fast = click.option(
    "--fail-fast",
    is_flag=True,
    help="End with the first failure; by default all models are built that do not read it.",
)
allow_refresh = click.option(
    "--allow-refresh",
    is_flag=True,
    help="Let tables of a protected target be dropped or rebuilt, for this once.",
)
jobs = click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1),
    metavar="N",
    help="Build up to N models, and batches of them, side by side; default: one model a core.",
)
allow_removals = click.option(
    "--allow-removals",
    is_flag=True,
    help="Take out all rows of files that are gone, however much of a source that is.",
)
env = click.option(
    "--env",
    metavar="NAME",
    shell_complete=completing.environments,
    help="In the environment of this name: tables of its own where definitions differ.",
)


def environment(env: str | None) -> str | None:
    """
    The environment that a command is about; None for production.

    Where the target says so, it is that of git's branch, unless another is named.
    """
    from infold.core.environment import checked_name
    from infold.declare.load import environment_of_branch

    if env is not None:
        return checked_name(env)
    root, target = click.get_current_context().obj
    return environment_of_branch(root, target)


def existing_environment(env: str | None) -> str | None:
    """The same for commands that only look: a branch without an environment is production's."""
    from infold import api

    name = environment(env)
    if name is None or env is not None:
        return name
    return name if name in api.ledger_of(opened(declared=True)).environments() else None


last_opened: Project | None = None
"""The project of the command, for what is done once it has ended."""


def opened(
    *, downgrade: bool = False, declared: bool = False, without_ledger: bool = False
) -> Project:
    """
    The project of the command's global options, read and checked.

    By the applied definitions, where `infold apply` applies them, unless the ``declared`` ones are
    asked for. Where the ledger that knew these was lost, only a command that works
    ``without_ledger`` goes on.
    """
    from infold import api
    from infold.api.opening import refuse_lost_ledger
    from infold.core.target import Apply

    global last_opened  # noqa: PLW0603 (a process carries out one command)
    root, target = click.get_current_context().obj
    project = last_opened = api.open_project(root, target, downgrade=downgrade, declared=declared)
    if not without_ledger:
        refuse_lost_ledger(project)
    if downgrade and project.target.apply is Apply.MANUAL:
        raise click.UsageError(_NO_DOWNGRADE)
    return project


def opened_to_build(*, downgrade: bool = False) -> Project:
    """The project of a command that builds tables: there has to be an applied definition."""
    from infold.planning.plan_notes import refuse_nothing_applied

    project = opened(downgrade=downgrade)
    refuse_nothing_applied(project)
    return project


_NO_DOWNGRADE = (
    "--allow-downgrade is for targets with `apply: auto`: a model that is built whole for this "
    "once has no definition that could be applied."
)


_ONLY_APPLY = (
    "A run of this target changes no definition: `infold apply --forward-only` does, as the target "
    "has `apply: manual`."
)


_NOT_FORWARD_ONLY = (
    "--forward-only is for production: an environment has no earlier rows, and builds all of a "
    "changed table."
)


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """The models, window and options that say what is brought up to date."""

    terms: tuple[str, ...]
    start: str | None
    end: str | None
    auto: bool
    select: tuple[str, ...]
    exclude: tuple[str, ...]
    batch_size: int | None
    per_partition: bool
    ignore_cron: bool
    full_listing: bool
    allow_downgrade: bool
    allow_destructive: tuple[str, ...]
    as_of: str | None
    forward_only: tuple[str, ...]
    effective_from: str | None

    def __post_init__(self) -> None:
        if self.effective_from and not self.forward_only:
            why = "--effective-from says from when --forward-only counts; name its models too."
            raise click.UsageError(why)
        if self.auto and (self.start or self.end):
            why = "--auto means everything that is stale; leave it out with a window."
            raise click.UsageError(why)

    @property
    def selected(self) -> tuple[str, ...]:
        """The terms that name the models, by --select or without."""
        return self.select + self.terms

    @property
    def instant(self) -> int | None:
        """The instant that the run takes for now, if one is given."""
        from infold.planning import selection

        return selection.parse_as_of(self.as_of)

    def project(self) -> Project:
        """The project, read and checked, as a run goes on with it."""
        from infold.core.target import Apply

        project = opened_to_build(downgrade=self.allow_downgrade)
        if self.forward_only and project.target.apply is Apply.MANUAL:
            raise click.UsageError(_ONLY_APPLY)
        return project

    def project_for_environment(self) -> Project:
        """The project of the files, for a run or plan of an environment."""
        if self.allow_downgrade:
            why = "--allow-downgrade is for production: an environment needs each definition."
            raise click.UsageError(why)
        if self.forward_only:
            raise click.UsageError(_NOT_FORWARD_ONLY)
        return opened(declared=True)

    def project_to_apply(self) -> Project:
        """The project as it is once the definitions of these models are applied."""
        from infold import api

        declared = opened(downgrade=self.allow_downgrade, declared=True)
        return api.to_apply(declared, self.selected, self.exclude)

    def plan_options(self, project: Project) -> PlanOptions:
        """The options as the planner takes them."""
        from infold.core.plan import PlanOptions
        from infold.planning import selection
        from infold.planning.selection import select_models

        names = select_models(project, self.selected, self.exclude)
        return PlanOptions(
            window=selection.parse_window(project, names, self.start, self.end),
            batch_size=cells_at_once(self.batch_size, per_partition=self.per_partition),
            ignore_cron=self.ignore_cron,
            full_listing=self.full_listing,
            allow_destructive=frozenset(self.allow_destructive),
            forward_only=dict.fromkeys(
                sorted(select_models(project, self.forward_only)) if self.forward_only else (),
                selection.parse_instant("--effective-from", self.effective_from),
            ),
        )

    @property
    def as_typed(self) -> str:
        """The options as they would be typed again, each after a space."""
        size = cells_at_once(self.batch_size, per_partition=self.per_partition)
        options = {
            "start": self.start,
            "end": self.end,
            "select": self.selected,
            "exclude": self.exclude,
            "batch-size": size,
            "ignore-cron": self.ignore_cron,
            "full-listing": self.full_listing,
            "allow-downgrade": self.allow_downgrade,
            "allow-destructive": self.allow_destructive,
            "as-of": self.as_of,
            "forward-only": self.forward_only,
            "effective-from": self.effective_from,
        }
        return "".join(_typed(name, value) for name, value in options.items())


@dataclass(frozen=True, kw_only=True)
class Rebuild:
    """The window and options of what builds tables again."""

    start: str | None
    end: str | None
    batch_size: int | None
    per_partition: bool
    dry_run: bool
    allow_refresh: bool
    allow_removals: bool
    allow_destructive: tuple[str, ...]
    fail_fast: bool
    as_of: str | None
    wait: float
    as_json: bool


allow_destructive = click.option(
    "--allow-destructive",
    multiple=True,
    metavar="MODEL",
    shell_complete=completing.models,
    help="Let this model's table lose columns, types or keys, or the model be removed, for this "
    "once. Repeatable.",
)


def build_options(command: Command) -> Command:
    """Declare the options of :class:`BuildOptions`; the command gets them as ``options``."""
    options = (
        click.argument("terms", nargs=-1, metavar="[TERM...]", shell_complete=completing.terms),
        start,
        end,
        click.option("--auto", is_flag=True, help="Everything that is stale; the default."),
        select,
        exclude,
        batch_size,
        per_partition,
        click.option(
            "--ignore-cron",
            is_flag=True,
            help="Ignore cron: build every model, incomplete intervals too.",
        ),
        click.option(
            "--full-listing",
            is_flag=True,
            help="List all dated folders of sources, those too that are due later.",
        ),
        click.option(
            "--allow-downgrade",
            is_flag=True,
            help="Build models that cannot be built cell by cell whole, for this once.",
        ),
        allow_destructive,
        as_of,
        click.option(
            "--forward-only",
            **_terms,
            help="Changed definitions of these models hold from the first cell that is not built; "
            "earlier cells keep their rows. Repeatable.",
        ),
        click.option(
            "--effective-from",
            metavar="TIME",
            help="With --forward-only: they hold from this start of a cell on.",
        ),
    )
    return _declared(command, options, "options", BuildOptions)


def rebuild(command: Command) -> Command:
    """Declare the options of :class:`Rebuild`; the command gets them as ``options``."""
    options = (
        start,
        end,
        batch_size,
        per_partition,
        click.option("--dry-run", is_flag=True, help="Show what would be built, and stop."),
        allow_refresh,
        allow_removals,
        allow_destructive,
        fail_fast,
        as_of,
        wait,
        as_json,
    )
    return _declared(command, options, "options", Rebuild)


def cells_at_once(batch_size: int | None, *, per_partition: bool) -> int | None:
    """How many cells one commit builds, where an option says so; not where two differ."""
    if per_partition and batch_size not in (None, 1):
        raise click.UsageError("--per-partition means --batch-size 1; leave one of them out.")
    return 1 if per_partition else batch_size


def _declared(
    command: Command,
    options: tuple[Callable[[Command], Command], ...],
    name: str,
    type_: type[BuildOptions | Rebuild],
) -> Command:
    """A command with options, which it gets as one value by a name."""

    @wraps(command)
    def with_options(**values: Any) -> Any:
        own = {field.name: values.pop(field.name) for field in fields(type_)}
        return command(**{name: type_(**own)}, **values)

    declared: Command = with_options
    for option in reversed(options):
        declared = option(declared)
    return declared


def _typed(name: str, value: object) -> str:
    """One option as it would be typed, once for each value; nothing without one."""
    values = value if isinstance(value, tuple) else (value,)
    typed = [one for one in values if one is not None and one is not False]
    return "".join(
        f" --{name}" if one is True else f" --{name} {shlex.quote(str(one))}" for one in typed
    )


# A run tells its listeners by itself. Here they hear of what ends a command before or without one.


def _in_a_folder(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """A file that will be written at the end: rather no run than one without it."""
    if path is not None and not path.absolute().parent.is_dir():
        why = f"{path}: there is no such folder."
        raise click.BadParameter(why)
    return path


_FILE_TYPE: Any = {
    "type": click.Path(dir_okay=False, path_type=Path),
    "callback": _in_a_folder,
    "metavar": "FILE",
}
_metrics = click.option(
    "--metrics",
    **_FILE_TYPE,
    help="Write what the run came to into a file, in Prometheus' text format.",
)
_log = click.option("--log", **_FILE_TYPE, help="Add what happens to a file, a JSON object a line.")


def sinks(command: Command) -> Command:
    """Declare both options; the command gets them as ``sinks``."""

    @wraps(command)
    def with_sinks(*, metrics: Path | None, log: Path | None, **values: Any) -> Any:
        from infold.core.hooks import Sinks

        sinks = Sinks(metrics, log)
        try:
            returned = command(sinks=sinks, **values)
        except (click.ClickException, click.exceptions.Exit):
            raise  # what was typed is no command; or it is told
        except BaseException as error:
            _tell(sinks, error, values)
            raise
        if not sinks.told:
            _tell(sinks, None, values)
        return returned

    return _metrics(_log(with_sinks))


def _tell(sinks: Sinks, error: BaseException | None, given: dict[str, Any]) -> None:
    """Tell of the end of the command that was typed, unless it only shows what it would do."""
    from infold.api.run_and_tell import tell_of_end
    from infold.messages.errors import InfoldError

    if getattr(given.get("options"), "dry_run", False):
        return
    context = click.get_current_context()
    root, target = context.obj
    try:
        name = environment(given["env"]) if "env" in given else None
    except InfoldError:
        return  # it is not known whether it was about production
    command = str(context.info_name)
    tell_of_end(root, target, command, sinks, error, environment=name or "")
