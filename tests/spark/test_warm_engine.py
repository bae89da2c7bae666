"""Commands in an engine that stays: right results, nothing left over, whoever dies."""

from __future__ import annotations

import json
import os
import pty
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.cli.warm_engine.engines import PATIENCE, Engine, await_that, runs

from infold.cli.init import write_project

pytestmark = pytest.mark.spark

VIEW = "---\nmaterialization: view\n---\nSELECT event_id, tax(url) AS tax FROM clicks\n"
PLAIN = "---\nmaterialization: view\n---\nSELECT event_id, upper(url) AS url FROM clicks\n"
FUNCTION = """
from infold import function

@function(parameters=["string"], returns="string", deterministic=True)
def tax(url):
    \"\"\"What a module beside the project says.\"\"\"
    import rates

    return rates.RATE
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The starter's project, with a function in Python, and what commands leave for it."""
    root = tmp_path_factory.mktemp("warm") / "shop"
    write_project(root)
    (root / "functions").mkdir()
    (root / "functions" / "tax.py").write_text(FUNCTION)
    (root / "models" / "taxed.sql").write_text(VIEW)
    (root / "models" / "plain.sql").write_text(PLAIN)
    modules = root.parent / "modules"
    modules.mkdir()
    (modules / "rates.py").write_text("RATE = 'none'\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(modules))
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        found = Engine(root, 0)
        try:
            yield found
        finally:
            with suppress(AssertionError):
                left = ready(found)
                found.run("engine", "stop")
                await_that(lambda: not runs(left["process"]) and not runs(left["jvm"]))


def ready(shop: Engine) -> dict[str, Any]:
    """The engine, started by a run if there is none."""
    found = shop.status()
    if found is None:
        done(shop, "engine", "restart")
        found = shop.status()
    assert found is not None
    return found


def done(shop: Engine, *words: str, **more: str) -> str:
    """A command's output; it ends well."""
    code, out, err = shop.run(*words, environment=more)
    assert code == 0, (out, err)
    return out


def click(shop: Engine, name: str) -> None:
    """A new event."""
    event = {"event_id": name, "user_id": "ann", "event_ts": "2024-03-09T10:00:00Z"}
    event |= {"url": "/", "amount": "1.50"}
    (shop.root / "landing" / "clicks" / f"{name}.json").write_text(json.dumps(event) + "\n")


def test_a_command_uses_what_an_earlier_one_left(shop: Engine) -> None:
    """The same JVM; the line that it stays is said once."""
    left = shop.run("run")
    engine = ready(shop)
    click(shop, "second")
    used = shop.run("run")
    after = ready(shop)

    assert (left[0], used[0], used[2]) == (0, 0, "")
    assert "Spark stays ready" in left[2]
    assert "1 row arrived in 1 new file" in used[1]
    assert (after["jvm"], after["process"]) == (engine["jvm"], engine["process"])
    assert after["commands"] == engine["commands"] + 1


def test_no_code_of_an_author_stays(shop: Engine) -> None:
    """A module that functions import is imported again by each command."""
    engine = ready(shop)
    rates = shop.root.parent / "modules" / "rates.py"

    seen = []
    for rate in ("low", "high"):
        rates.write_text(f"RATE = '{rate}'\n")
        seen.append(done(shop, "show", "taxed", "--limit", "1"))

    assert [rate in text for rate, text in zip(("low", "high"), seen, strict=True)] == [True, True]
    assert ready(shop)["jvm"] == engine["jvm"]


def test_nothing_piles_up(shop: Engine) -> None:
    """
    Ten commands leave no open file, thread, process or memory in Java.

    Commands that call functions in Python leave a socket each, which Spark does not close.
    """

    def taken() -> tuple[int, int, int]:
        engine = ready(shop)
        process = Path(f"/proc/{engine['jvm']}")
        await_that(lambda: ready(shop)["busy"] is False)
        return (
            len(list((process / "fd").iterdir())),
            len(list((process / "task").iterdir())),
            engine["memory_bytes"],
        )

    for _ in range(2):
        done(shop, "show", "plain", "--limit", "1")
    before = taken()
    for _ in range(8):
        done(shop, "show", "plain", "--limit", "1")
    after = taken()

    assert after[0] < before[0] + 8  # one of each command would be as many
    assert after[1] <= before[1] + 10
    assert after[2] <= before[2] + 200_000_000


def test_other_settings_are_another_jvm(shop: Engine) -> None:
    """It takes the place of the one that was there, which ends; results are the same."""
    engine = ready(shop)
    file = shop.root / "infold.yml"
    text = file.read_text()
    file.write_text(text.replace("storage: iceberg", "spark: {spark.driver.memory: 1g}"))

    shown, other = done(shop, "show", "plain", "--limit", "0"), ready(shop)
    again = done(shop, "show", "plain", "--limit", "0")

    assert sorted(again.splitlines()) == sorted(shown.splitlines())
    assert other["jvm"] != engine["jvm"]
    assert ready(shop)["jvm"] == other["jvm"]
    await_that(lambda: not runs(engine["jvm"]) and not runs(engine["process"]))


def test_a_command_that_dies_takes_the_jvm_along(shop: Engine) -> None:
    """
    At a write: it looks like a killed command.

    Once a plan was looked at in a terminal another one starts before it is needed. Whoever asks
    for it waits until it is there, and the next run recovers.
    """
    engine = ready(shop)
    click(shop, "dies")

    at = {"INFOLD_CRASH_AT": "table sessions: after commit"}
    code, _, _ = shop.run("run", environment=at)
    await_that(lambda: not runs(engine["jvm"]) and not runs(engine["process"]))
    terminal, screen = pty.openpty()
    with shop.start("plan", stderr=screen, environment={"CI": ""}) as planned:
        planned.communicate(timeout=PATIENCE)
    os.set_blocking(terminal, False)
    said = os.read(terminal, 1000).decode()
    os.close(screen)
    os.close(terminal)

    assert code == -signal.SIGKILL
    assert "is ready" in done(shop, "engine", "status")
    click(shop, "early")
    run = done(shop, "run", CI="")

    assert said.startswith("Spark starts in the background")
    assert "arrived in" in run
    assert "Spark included" not in run
    assert ready(shop)["commands"] == 1
    clicks, sessions = (
        [json.loads(line) for line in done(shop, "show", table, "--json").splitlines()]
        for table in ("clicks", "sessions")
    )
    assert {"second", "dies", "early"} <= {row["event_id"] for row in clicks}
    assert sum(row["events"] for row in sessions) == len(clicks)
