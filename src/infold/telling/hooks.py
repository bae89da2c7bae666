"""Tells hooks of the ends of runs: by a command, or by a request to a URL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infold.core.hooks import PLACE, Fact, Hook, When
from infold.core.interval import SECOND
from infold.system.secrets import resolve, resolve_url
from infold.telling.listener import Listener, RunEnd
from infold.telling.sender import NotSentError, post, with_secrets

JSON, TEXT = "application/json", "text/plain; charset=utf-8"


@dataclass
class Hooks(Listener):
    """Those of a target; each is told by itself, in their order."""

    hooks: Sequence[Hook]
    name = "hooks"

    def ended(self, end: RunEnd) -> Iterator[str]:
        """Tell all that are for such an end; yields which could not be told, and why."""
        wanted = When.SUCCESS if end.succeeded else When.FAILURE
        root = end.start.project.root
        for hook in self.hooks:
            if hook.when is not wanted:
                continue
            try:
                with with_secrets():
                    if hook.command:
                        _run(hook, facts_of(end), root)
                    else:
                        _send(hook, facts_of(end), root)
            except NotSentError as error:
                yield f"the hook {hook.name} failed: {error}"


def _send(hook: Hook, facts: Facts, root: Path) -> None:
    def secret(text: str) -> str:
        return resolve(text, root, hook.name)

    url = resolve_url(hook.webhook, root, f"{hook.name}.webhook")
    body = filled(json.loads(hook.body), facts, secret) if hook.body else facts
    kind = TEXT if isinstance(body, str) else JSON
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    # A header is one line: an error that has several must not make more of them.
    headers = {
        name: " ".join(filled(value, facts, secret).splitlines()) for name, value in hook.headers
    }
    if any(name.lower() == "content-type" for name in headers):
        kind = ""
    own = {"Content-Type": kind} if kind else {}
    post(url, text.encode(), own | headers, seconds=hook.timeout / SECOND)


def _run(hook: Hook, facts: Facts, root: Path) -> None:
    """
    Run a command in the project's folder, with all that it started.

    It gets the facts as variables, in capitals after ``INFOLD_``, and as JSON to read. What it
    prints goes where errors go, so that the output of the run stays what programs read.
    """
    named = {f"INFOLD_{fact.upper()}": str(value) for fact, value in facts.items()}
    seconds = hook.timeout / SECOND
    try:
        done = subprocess.Popen(
            ["/bin/sh", "-c", hook.command],
            cwd=root,
            env={**os.environ, **named},
            stdin=subprocess.PIPE,
            stdout=2,
            stderr=2,
            start_new_session=True,
        )
    except OSError as error:
        raise NotSentError(error.strerror or type(error).__name__) from None
    try:
        done.communicate(json.dumps(facts, ensure_ascii=False).encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        raise NotSentError(f"it was ended after {seconds:g} seconds") from None
    finally:
        if done.returncode is None:
            os.killpg(done.pid, signal.SIGKILL)
            done.wait()
    if done.returncode:
        raise NotSentError(f"it ended with exit code {done.returncode}")


Facts = Mapping[Fact, str | int | float]


def facts_of(end: RunEnd) -> Facts:
    """The facts of a run that ended."""
    result, project = end.result, end.start.project
    return {
        Fact.PROJECT: project.name,
        Fact.TARGET: project.target.name,
        Fact.COMMAND: end.start.command,
        Fact.RUN: result.run if result else "",
        Fact.STATE: end.state,
        Fact.ERROR: end.why,
        Fact.MODELS: ", ".join(failure.model for failure in end.failures if failure.model),
        Fact.STEPS: len(result.steps) if result else 0,
        Fact.ROWS_READ: result.receipt.read if result else 0,
        Fact.ROWS_WRITTEN: result.receipt.written if result else 0,
        Fact.SECONDS: round(end.seconds, 3),
    }


def filled(template: Any, facts: Facts, secret: Callable[[str], str]) -> Any:
    """
    A template with facts in the places of its texts; of a mapping or list, all texts in it.

    ``secret`` resolves references of the template; what looks like one in a fact stays.
    """
    if isinstance(template, Mapping):
        return {key: filled(value, facts, secret) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, facts, secret) for value in template]
    if not isinstance(template, str):
        return template
    parts = PLACE.split(template)
    return "".join(
        str(facts[Fact(part)]) if at % 2 else secret(part) for at, part in enumerate(parts)
    )
