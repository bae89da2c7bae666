"""Metrics are what Prometheus reads, whole, and go on as the same series from run to run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.cli import sample
from tests.running.telling.runs import bad, end, good, project, raising

from infold.core.report import RunFailed
from infold.core.sinks import Sinks
from infold.messages import run_errors
from infold.messages.errors import InfoldError

LABELS = (("project", "shop"), ("target", "dev"))
Samples = Mapping[tuple[str, str], float]


def read(file: Path) -> Samples:
    """The samples of a file, as Prometheus' own parser reads them: by name and model."""
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(file.read_text()):
        assert family.type == "gauge"
        assert family.documentation.endswith(".")
        for one in family.samples:
            labels = dict(one.labels)
            model = labels.pop("model", "")
            if one.name != "infold_build_info":
                assert tuple(sorted(labels.items())) == LABELS
            assert (one.name, model) not in found
            found[one.name, model] = one.value
    return found


def test_a_run(tmp_path: Path) -> None:
    """What it did, in all and for each model. Names are as Prometheus' conventions want them: a
    prefix, the unit in the plural at the end, no unit of a part.
    """
    file = tmp_path / "infold.prom"

    result = end(project(tmp_path, ""), good, Sinks(metrics=file))

    found, own = read(file), sample.result()
    assert result == own
    assert found["infold_run_success", ""] == 1
    assert found["infold_run_steps", ""] == 3
    assert found["infold_run_failed_models", ""] == 0
    for name in ("arrived", "read", "scanned", "written", "removed", "set_aside"):
        rows = [found[f"infold_model_{name}_rows", step.model] for step, _ in own.steps]
        assert rows == [getattr(receipt, name) for _, receipt in own.steps]
    at = found["infold_run_end_timestamp_seconds", ""]
    assert found["infold_run_last_success_timestamp_seconds", ""] == at
    began = found["infold_run_start_timestamp_seconds", ""]
    assert at - began == pytest.approx(found["infold_run_duration_seconds", ""], abs=1e-3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["infold.prom"]
    units = "seconds|rows|steps|cells|models|audits|success|failed|info"
    for name, _ in found:
        assert re.fullmatch(rf"infold_(run|model|build)(_[a-z]+)*_({units})", name), name


def test_a_failure_keeps_the_time_of_the_last_success(tmp_path: Path) -> None:
    """An alert asks how long ago that was; a run that did not begin is a failure too. Before the
    first success there is none, and not the beginning of time.
    """
    file, shop = tmp_path / "infold.prom", project(tmp_path, "")
    last = ("infold_run_last_success_timestamp_seconds", "")
    with pytest.raises(RunFailed):
        end(shop, bad(sample.failed()), Sinks(metrics=file))
    assert last not in read(file)
    end(shop, good, Sinks(metrics=file))
    before = read(file)[last]

    with pytest.raises(RunFailed):
        end(shop, bad(sample.failed()), Sinks(metrics=file))
    failed = read(file)
    over = run_errors.over_budget(rows=10, max_rows=3)
    with pytest.raises(InfoldError):
        end(shop, raising(over), Sinks(metrics=file))
    found = read(file)

    assert (failed[last], failed["infold_run_success", ""]) == (before, 0)
    assert failed["infold_run_failed_models", ""] == 2
    assert failed["infold_run_waiting_models", ""] == 1
    assert [failed["infold_model_failed", one] for one in ("clicks", "daily", "users")] == [0, 1, 1]
    assert (found[last], found["infold_run_success", ""]) == (before, 0)


def test_another_environment_is_another_series(tmp_path: Path) -> None:
    """Its name is a label; hooks are production's."""
    file = tmp_path / "infold.prom"
    shop = project(tmp_path, "on_success: {command: 'touch told'}")

    end(shop, good, Sinks(metrics=file), environment="mine")

    assert 'infold_run_success{project="shop",target="dev",environment="mine"} 1\n' in (
        file.read_text()
    )
    assert not (tmp_path / "told").exists()


def test_a_file_that_cannot_be_written_is_a_note(tmp_path: Path) -> None:
    """The run is as it was; what was there before stays."""
    file = tmp_path / "gone" / "infold.prom"

    result = end(project(tmp_path, ""), good, Sinks(metrics=file))

    assert result.steps == sample.result().steps
    assert result.notes[-1] == f"{file} was not written: No such file or directory"
