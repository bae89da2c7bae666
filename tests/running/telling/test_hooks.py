"""Hooks tell of the ends of runs, keep their secrets, and never change what a run does."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli import sample
from tests.declare.shop import INFOLD, SHOP, read
from tests.docs.pages import DOCS
from tests.running.telling.receiver import Receiver, receiver
from tests.running.telling.runs import bad, end, project, raising

from infold.api.listening import told
from infold.core.ports import Progress, SilentProgress
from infold.core.report import RunFailed, RunResult
from infold.messages import run_errors
from infold.messages.errors import InfoldError

SECRET = "s3cret/part"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A server whose address is a secret in the environment."""
    with receiver() as found:
        monkeypatch.setenv("HOOK_URL", f"{found.url}/{SECRET}")
        monkeypatch.setenv("HOOK_TOKEN", SECRET)
        yield found


def failed_of(root: Path, hooks: str) -> RunResult:
    """The result of a run that failed, as it is raised."""
    with pytest.raises(RunFailed) as found:
        end(project(root, hooks), bad(sample.failed()))
    return found.value.result


def reasons(result: RunResult) -> list[str]:
    """Why models failed."""
    return [failure.reason for failure in result.failures]


class TestWebhooks:
    """A request to a URL."""

    def test_the_facts_are_the_body(self, server: Receiver, tmp_path: Path) -> None:
        """Without a template the facts are sent as JSON; a body of one text is sent as it is."""
        end(project(tmp_path, "on_success: {webhook: '${env:HOOK_URL}'}"))
        failed_of(tmp_path, "on_failure: {webhook: '${env:HOOK_URL}', body: '{state}: {models}'}")

        got, text = server.got
        assert 0 <= got.json["seconds"] < 60
        assert got.path == f"/{SECRET}"
        assert got.headers["Content-Type"] == "application/json"
        assert got.json | {"seconds": 0} == {
            "project": "shop",
            "target": "dev",
            "command": "run",
            "run": "20240311T063000-a1b2c3",
            "state": "done",
            "error": "",
            "models": "",
            "steps": 3,
            "rows_read": sample.result().receipt.read,
            "rows_written": sample.result().receipt.written,
            "seconds": 0,
        }
        assert text.body == "failed: daily, users"
        assert text.headers["Content-Type"] == "text/plain; charset=utf-8"

    def test_a_template_is_json_whatever_a_fact_says(
        self, server: Receiver, tmp_path: Path
    ) -> None:
        """Facts are filled into the texts of a body, so quotes and line ends break nothing."""
        hooks = """\
on_failure:
  webhook: ${env:HOOK_URL}
  headers: {Authorization: 'Bearer ${env:HOOK_TOKEN}', X-State: '{state}'}
  body:
    text: '{project} {state}: {error}'
    key: ${env:HOOK_TOKEN}
    fields: [{n: 3, on: true, no: null, models: '{models} {steps}'}]
"""
        error = run_errors.step_failed(model="daily", what='a "b"\n${env:HOOK_TOKEN}', condition="")
        with pytest.raises(InfoldError):
            end(project(tmp_path, hooks), raising(error))

        [got] = server.got
        assert got.headers["Authorization"] == f"Bearer {SECRET}"
        assert got.headers["X-State"] == "failed"
        assert got.json["key"] == SECRET
        assert got.json["fields"] == [{"n": 3, "on": True, "no": None, "models": " 0"}]
        # A reference in a fact is text: nobody may read secrets by what a row or an error says.
        assert got.json["text"].endswith('a "b"\n${env:HOOK_TOKEN}')

    def test_another_answer_is_said(self, server: Receiver, tmp_path: Path) -> None:
        """The result is the run's, with a note; and no redirection is followed."""
        own = sample.result()
        server.location = f"{server.url}/elsewhere"
        for server.answer in (300, 302, 404, 500):
            result = end(project(tmp_path, "on_success: {webhook: '${env:HOOK_URL}'}"))

            note = f"the hook on_success failed: the answer was {server.answer}"
            assert result.notes == (*own.notes, note)
            assert (result.steps, result.state) == (own.steps, own.state)
        assert [got.path for got in server.got] == [f"/{SECRET}"] * 4

    def test_who_does_not_answer_is_left(self, server: Receiver, tmp_path: Path) -> None:
        """After `timeout`; the run ends as it would have."""
        server.hang = threading.Event()
        hooks = "on_failure: {webhook: '${env:HOOK_URL}', timeout: 200 milliseconds}"
        before = time.monotonic()

        result = failed_of(tmp_path, hooks)

        assert time.monotonic() - before < 10
        assert result.notes[-1].startswith("the hook on_failure failed: no answer")
        assert reasons(result) == reasons(sample.failed())

    @pytest.mark.parametrize(
        "url",
        [
            "http://127.0.0.1:1/" + SECRET,
            "http://nowhere.invalid/" + SECRET,
            "http://[" + SECRET,
            "http://127.0.0.1:9/a b" + SECRET,
            "file:///" + SECRET,
            "http://127.0.0.1:port/" + SECRET,
        ],
    )
    def test_no_note_has_the_address(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
    ) -> None:
        """Whatever is wrong with it: it is a secret as a whole."""
        monkeypatch.setenv("HOOK_URL", url)

        result = end(
            project(tmp_path, "on_success: {webhook: '${env:HOOK_URL}', timeout: 5 seconds}")
        )

        assert result.notes[-1].startswith("the hook on_success failed: ")
        assert SECRET not in repr(result)

    def test_a_secret_that_is_not_there(self, tmp_path: Path) -> None:
        """Is said by its reference, and the next hook is told all the same."""
        hooks = """\
on_success:
  - {webhook: '${file:none.txt}'}
  - {command: 'echo told > told.txt'}
"""
        result = end(project(tmp_path, hooks))

        assert result.notes[-1] == (
            "the hook on_success[1] failed: ${file:none.txt}, "
            "the file cannot be read: No such file or directory"
        )
        assert (tmp_path / "told.txt").read_text() == "told\n"


class TestCommands:
    """A command of the shell."""

    def test_it_gets_the_facts(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """As variables and as JSON, in the project's folder. Programs read a run's output: a hook
        prints where errors go.
        """
        hooks = "on_failure: {command: 'echo \"$INFOLD_STATE $INFOLD_MODELS\"; cat > b'}"

        result = failed_of(tmp_path, hooks)

        assert result.notes == sample.failed().notes
        assert reasons(result) == reasons(sample.failed())
        out, err = capfd.readouterr()
        assert (out, err) == ("", "failed daily, users\n")
        assert json.loads((tmp_path / "b").read_text())["error"] == "; ".join(reasons(result))

    def test_one_that_fails_is_said(self, tmp_path: Path) -> None:
        """By its exit code; one that reads nothing of what it is given fails not for that. Nor does
        the run fail where the folder is gone.
        """
        for folder, note in (
            (tmp_path, "[1] failed: it ended with exit code 7"),
            (tmp_path / "gone", "[2] failed: No such file or directory"),
        ):
            result = end(project(folder, "on_success: [{command: 'exit 7'}, {command: 'true'}]"))

            assert result.notes[-1] == f"the hook on_success{note}"

    def test_one_that_hangs_is_ended_with_all_it_started(self, tmp_path: Path) -> None:
        """Its children as well: none goes on behind the run."""
        hooks = "on_success: {command: 'sleep 60 & echo $! > pid; wait', timeout: 1 second}"
        before = time.monotonic()

        result = end(project(tmp_path, hooks))

        assert time.monotonic() - before < 20
        assert result.notes[-1] == "the hook on_success failed: it was ended after 1 seconds"
        child = int((tmp_path / "pid").read_text())
        for _ in range(100):
            if not alive(child):
                break
            time.sleep(0.05)
        assert not alive(child)


def alive(process: int) -> bool:
    """Whether a process is there, and not only left to be waited for."""
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


class TestWhich:
    """Which hooks are told."""

    HOOKS = """\
on_success: {command: 'echo good >> told'}
on_failure: {command: 'echo "$INFOLD_STATE $INFOLD_ERROR" >> told'}
"""

    def test_a_run_that_did_not_begin(self, tmp_path: Path) -> None:
        """Is a failure; the error is the same one, without a result. What could not be told is
        a fact of it.
        """
        error = run_errors.over_budget(rows=10, max_rows=3)
        raised = []
        for hooks in (self.HOOKS, "on_failure: {command: 'exit 3'}"):
            with pytest.raises(InfoldError) as found:
                end(project(tmp_path, hooks), raising(error))
            raised.append(found.value)

        assert raised[0] is error
        assert (tmp_path / "told").read_text() == f"refused over-budget: {error.what}\n"
        why = "the hook on_failure failed: it ended with exit code 3"
        assert (raised[1].exit_code, raised[1].facts[-1]) == (3, ("note", why))

    def test_a_crash(self, tmp_path: Path) -> None:
        """Is a failure like others, and goes on its way, as Ctrl-C does."""
        told = tmp_path / "told"
        with pytest.raises(KeyboardInterrupt):
            end(project(tmp_path, self.HOOKS), raising(KeyboardInterrupt()))
        assert told.read_text() == "stopped stopped by KeyboardInterrupt\n"

        with pytest.raises(ZeroDivisionError):
            end(project(tmp_path, self.HOOKS), raising(ZeroDivisionError()))
        assert told.read_text().splitlines()[1].startswith("failed ")


def test_the_run_is_shown_as_without_hooks(tmp_path: Path) -> None:
    """What a run says of its steps reaches its progress, once each and in order."""
    said = []

    class Saying(SilentProgress):
        def note(self, text: str) -> None:
            said.append(text)

    def run(shown: Progress) -> RunResult:
        shown.note("one")
        shown.note("two")
        return sample.result()

    told(project(tmp_path, "on_success: {command: 'true'}"), "run", Saying(), run)

    assert said == ["one", "two"]


@pytest.mark.parametrize(
    ("number", "hooks", "lineage"),
    [(0, ["on_failure[1]", "on_failure[2]", "on_success"], False), (1, [], True)],
)
def test_the_examples_of_the_page(number: int, hooks: list[str], lineage: bool) -> None:
    """`docs/notifications.md` shows keys as they are declared."""
    page = (DOCS / "notifications.md").read_text(encoding="utf-8")
    example = re.findall(r"```yaml\n(targets:.*?)```", page, re.DOTALL)[number]

    found, errors = read({**SHOP, "infold.yml": INFOLD[: INFOLD.index("targets:")] + example})

    assert errors == []
    assert found is not None
    assert [hook.name for hook in found.targets["prod"].hooks] == hooks
    assert (found.targets["prod"].lineage is not None) == lineage
