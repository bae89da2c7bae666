"""
What a run came to, in Prometheus' text format, for a collector that reads files.

All are gauges of the last run: a run is a job that ends, so nothing counts up over several. A file
is replaced as a whole, so that no collector reads half of one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from infold import __version__
from infold.core.record import Receipt
from infold.telling.listener import Listener, RunEnd

SUCCESS = "infold_run_last_success_timestamp_seconds"

RUN = {
    "infold_run_success": "Whether the last run succeeded: 1, or 0.",
    "infold_run_start_timestamp_seconds": "When the last run began.",
    "infold_run_end_timestamp_seconds": "When the last run ended.",
    SUCCESS: "When the last run ended that succeeded.",
    "infold_run_duration_seconds": "How long the last run took, the start of Spark included.",
    "infold_run_steps": "How many steps the last run did.",
    "infold_run_failed_models": "How many models failed, or were refused.",
    "infold_run_waiting_models": "How many models were not tried, as they read one that failed.",
}
"""The metrics of a run, each with what it is."""

MODEL = {
    "infold_model_failed": "Whether the last run failed for the model: 1, or 0.",
    "infold_model_steps": "How many steps of the model the last run did.",
    "infold_model_duration_seconds": "How long these steps took.",
    "infold_model_arrived_rows": "Rows of new files that were parsed.",
    "infold_model_read_rows": "Rows that were evaluated to build the result.",
    "infold_model_scanned_rows": "Rows that were searched to find them.",
    "infold_model_written_rows": "Rows that were written.",
    "infold_model_removed_rows": "Rows that were taken out.",
    "infold_model_set_aside_rows": "Rows that could not be used.",
    "infold_model_built_cells": "Cells that were built.",
    "infold_model_failed_audits": "Audits of severity warn that failed.",
}
"""The metrics of each model with a step or a failure."""


@dataclass
class Metrics(Listener):
    """Replaces a file at the end of a run."""

    path: Path
    name = "writing metrics"

    def ended(self, end: RunEnd) -> Iterator[str]:
        """Write the file; whose run failed keeps the time of the last success from it."""
        try:
            text = metrics_text(end, self._last_success(end))
            fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(self.path)
        except OSError as error:
            yield f"{self.path} was not written: {error.strerror}"

    def _last_success(self, end: RunEnd) -> float | None:
        if end.succeeded:
            return end.at / 1e6
        if not self.path.exists():
            return None
        named = f"^{SUCCESS}{re.escape(_labels(_of_run(end)))} ([0-9.]+)$"
        found = re.search(named, self.path.read_text(encoding="utf-8"), re.MULTILINE)
        return float(found[1]) if found else None


def metrics_text(end: RunEnd, last_success: float | None) -> str:
    """The metrics of a run, each with its help and type."""
    of_run, result = _of_run(end), end.result
    run = {
        "infold_run_success": int(end.succeeded),
        "infold_run_start_timestamp_seconds": end.start.at / 1e6,
        "infold_run_end_timestamp_seconds": end.at / 1e6,
        SUCCESS: last_success,
        "infold_run_duration_seconds": end.seconds,
        "infold_run_steps": len(result.steps) if result else 0,
        "infold_run_failed_models": sum(bool(one.model) for one in end.failures),
        "infold_run_waiting_models": len(result.not_tried) if result else 0,
    }
    samples = {name: [(of_run, value)] for name, value in run.items() if value is not None}
    for model, values in _of_models(end).items():
        for name, value in values.items():
            samples.setdefault(name, []).append(({**of_run, "model": model}, value))
    version = ({"version": __version__}, 1)
    samples["infold_build_info"] = [version]
    helps = {**RUN, **MODEL, "infold_build_info": "The version of infold that wrote this."}
    return "".join(_metric(name, helps[name], samples[name]) for name in helps if name in samples)


def _of_run(end: RunEnd) -> Mapping[str, str]:
    """The labels of all metrics: the same for each run, so that they go on as one series."""
    project = end.start.project
    return {
        "project": project.name,
        "target": project.target.name,
        **({"environment": end.start.environment} if end.start.environment else {}),
    }


def _of_models(end: RunEnd) -> Mapping[str, Mapping[str, float]]:
    found: dict[str, list[Receipt]] = {}
    for step, receipt in end.result.steps if end.result else ():
        found.setdefault(step.model, []).append(receipt)
    failed = [failure.model for failure in end.failures if failure.model]
    for model in failed:
        found.setdefault(model, [])
    return {
        model: _of_model(sum(receipts, Receipt()), len(receipts), failed=model in failed)
        for model, receipts in found.items()
    }


def _of_model(receipt: Receipt, steps: int, *, failed: bool) -> Mapping[str, float]:
    return {
        "infold_model_failed": int(failed),
        "infold_model_steps": steps,
        "infold_model_duration_seconds": receipt.seconds,
        "infold_model_arrived_rows": receipt.arrived,
        "infold_model_read_rows": receipt.read,
        "infold_model_scanned_rows": receipt.scanned,
        "infold_model_written_rows": receipt.written,
        "infold_model_removed_rows": receipt.removed,
        "infold_model_set_aside_rows": receipt.set_aside,
        "infold_model_built_cells": receipt.cells_built,
        "infold_model_failed_audits": receipt.audits_failed,
    }


def _metric(name: str, about: str, samples: list[tuple[Mapping[str, str], float]]) -> str:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} gauge"]
    lines += [f"{name}{_labels(labels)} {value!r}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    """Labels as they are written; names of infold have none of the characters to escape."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
