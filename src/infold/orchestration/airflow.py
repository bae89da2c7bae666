"""
Operators for Airflow: a task that runs a project, or a task for each of its models.

A task is a command of infold. It fails for good where another try would meet the same mistake, and
is tried again as often as its ``retries`` say where that may help.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from airflow.sdk import BaseHook, BaseOperator, TaskGroup
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from infold.messages import command_errors
from infold.messages.errors import InfoldError
from infold.orchestration.command import (
    RUN_OPTIONS,
    WAIT_SECONDS,
    InfoldProject,
    RunningCommand,
    RunOptions,
    summary,
    terms,
)
from infold.orchestration.outcome import JsonObject, Outcome, Verdict, models_with_work

__all__ = [
    "InfoldOperator",
    "InfoldPlanOperator",
    "InfoldProject",
    "InfoldRunOperator",
    "InfoldTaskGroup",
]


class InfoldOperator(BaseOperator):
    """
    A task that carries out any command of infold: ``arguments=["verify", "--sample", "10"]``.

    ``secrets`` are variables of the command's environment by fields of connections, such as
    ``{"LEDGER_PASSWORD": "shop_ledger.password"}``. They are looked up when the task runs, and are
    in no rendered template. The result, its ``--json``, is the task's XCom.
    """

    template_fields: Sequence[str] = ("folder", "target", "infold_command", "env", "arguments")
    template_fields_renderers: ClassVar[dict[str, str]] = {"env": "json"}
    ui_color = "#e0f0e3"

    def __init__(
        self,
        *,
        project: InfoldProject | str,
        arguments: Sequence[str] = (),
        secrets: Mapping[str, str] | None = None,
        skip_if_nothing: bool = False,
        **kwargs: Any,
    ) -> None:
        """``project`` is a folder, or says more; ``kwargs`` are those of every operator."""
        super().__init__(**kwargs)
        of = InfoldProject(project) if isinstance(project, str) else project
        self.folder = str(of.folder)
        self.target = of.target
        self.infold_command = of.infold_command
        self.env = dict(of.env)
        self.arguments = list(arguments)
        self.secrets = dict(secrets or {})
        self.skip_if_nothing = skip_if_nothing
        self._running = RunningCommand()

    def execute(self, context: Any) -> JsonObject:
        """Carry out the command; what it printed, or an exception that Airflow knows."""
        del context
        command, *words = self.arguments
        return self.finished(self.carried_out(command, words))

    def carried_out(self, command: str, words: Sequence[str]) -> Outcome:
        """How a command of the project ended, whatever that was."""
        try:
            project = InfoldProject(
                self.folder,
                self.target or None,
                self.infold_command,
                {**self.env, **_secrets(self.secrets)},
            )
            return self._running.carry_out(project, command, words, self.log.info)
        except InfoldError as error:
            raise AirflowFailException(str(error)) from None

    def finished(self, outcome: Outcome) -> JsonObject:
        """The task's result, or the state in which it ends otherwise."""
        if outcome.verdict is Verdict.TRY_AGAIN:
            raise AirflowException(outcome.why)
        if outcome.verdict is Verdict.GIVE_UP:
            raise AirflowFailException(outcome.why)
        if outcome.verdict is Verdict.NOTHING_TO_DO:
            self.log.info("Nothing to do.")
            if self.skip_if_nothing:
                raise AirflowSkipException("nothing to do")
        for warning in outcome.warnings:
            self.log.warning("%s", warning)
        return summary(outcome.result)

    def on_kill(self) -> None:
        """Stop the command as SIGTERM does, and wait for its end."""
        self._running.stop()


class InfoldRunOperator(InfoldOperator):
    """
    A task that brings tables up to date: ``infold run``, with its options.

    Another run of the target is waited for, for ten minutes.
    """

    template_fields: Sequence[str] = (
        *(name for name in InfoldOperator.template_fields if name != "arguments"),
        *RUN_OPTIONS,
    )

    def __init__(
        self,
        *,
        project: InfoldProject | str,
        select: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        start: str | None = None,
        end: str | None = None,
        wait: float | str | None = WAIT_SECONDS,
        max_rows: int | str | None = None,
        jobs: int | str | None = None,
        environment: str | None = None,
        flags: Sequence[str] = (),
        planned_by: str | None = None,
        **kwargs: Any,
    ) -> None:
        """
        ``flags`` are other options, as they are typed.

        ``planned_by`` is the task that planned: this one is skipped where its plan has none of the
        selected models.
        """
        super().__init__(project=project, **kwargs)
        self.select = select
        self.exclude = exclude
        self.start = start
        self.end = end
        self.wait = wait
        self.max_rows = max_rows
        self.jobs = jobs
        self.environment = environment
        self.flags = list(flags)
        self.planned_by = planned_by

    def execute(self, context: Any) -> JsonObject:
        """Run; the receipt and what became of each model."""
        if self.planned_by is not None:
            plan = context["ti"].xcom_pull(task_ids=self.planned_by)
            selected = list(terms(self.select))
            if plan is not None and not {*plan["models"]} & {*selected}:
                raise AirflowSkipException(f"the plan has nothing for {', '.join(selected)}")
        options = RunOptions(**{name: getattr(self, name) for name in RUN_OPTIONS})
        return self.finished(self.carried_out("run", options.words()))


class InfoldPlanOperator(InfoldOperator):
    """A task that plans; its XCom has the ``models`` with work, in order, and ``rows`` to read."""

    def execute(self, context: Any) -> JsonObject:
        """Plan; models that a run would refuse count as work, so that their own task says why."""
        del context
        outcome = self.carried_out("plan", self.arguments)
        plan = outcome.result
        if "steps" not in plan:
            return self.finished(outcome)
        refused = [entry["model"] for entry in plan["refused"]]
        models = [*models_with_work(plan), *refused]
        self.log.info("To build: %s", ", ".join(models) or "nothing")
        return {
            "models": models,
            "refused": refused,
            "rows": plan["rows"],
            "unapplied": plan["unapplied"],
        }


class InfoldTaskGroup(TaskGroup):
    """
    A task for each table of a project, after those of the tables that it reads.

    The first task plans, and tasks of tables without work are skipped. ``models`` has the task of
    each model by its name. One run of a target works at a time, so these tasks wait for each
    other: give them a pool with one slot (``operator={"pool": "shop"}``).
    """

    def __init__(
        self,
        *,
        project: InfoldProject | str,
        group_id: str = "infold",
        models: Collection[str] | None = None,
        operator: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """``models`` are those that get a task, by default all; ``operator`` is for each task."""
        super().__init__(group_id=group_id, **kwargs)
        of = InfoldProject(project) if isinstance(project, str) else project
        graph, given = of.graph(), dict(operator or {})
        self.models: dict[str, InfoldRunOperator] = {}
        with self:
            plan = InfoldPlanOperator(task_id="plan", project=of, **_without_run_options(given))
            for model in graph.tables:
                if models is not None and model.name not in models:
                    continue
                task = InfoldRunOperator(
                    task_id=model.name,
                    project=of,
                    select=[model.name],
                    planned_by=plan.task_id,
                    trigger_rule="none_failed",
                    doc_md=model.description or None,
                    **given,
                )
                known = [
                    self.models[name] for name in graph.reads(model.name) if name in self.models
                ]
                task.set_upstream(known or [plan])
                self.models[model.name] = task


def _without_run_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the task that plans shares with those that run."""
    return {name: value for name, value in given.items() if name not in RUN_OPTIONS}


def _secrets(fields: Mapping[str, str]) -> dict[str, str]:
    """The variables with what their connections have."""
    return {variable: _field(variable, named) for variable, named in fields.items()}


def _field(variable: str, named: str) -> str:
    """A field of a connection, which is named as ``CONNECTION.FIELD``."""
    name, _, wanted = named.partition(".")
    connection = BaseHook.get_connection(name)
    extra = {f"extra.{key}": value for key, value in connection.extra_dejson.items()}
    known = {
        "host": connection.host,
        "login": connection.login,
        "password": connection.password,
        "port": connection.port,
        "schema": connection.schema,
        "uri": connection.get_uri(),
        **extra,
    }
    if wanted not in known:
        raise command_errors.no_such_field(field=wanted, variable=variable, known=tuple(known))
    value = known[wanted]
    return "" if value is None else str(value)
