"""``on_failure`` and ``on_success`` of a target: who is told of its runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from infold.core.hooks import PLACE, Fact, Hook, When
from infold.declare.keys import Keys
from infold.declare.tree import Value
from infold.messages import findings
from infold.system.secrets import bad_reference, has_password

HOOK_KEYS = ("command", "webhook", "body", "headers", "timeout")
OF_WEBHOOKS = ("body", "headers")
HOOK_FORMS = ("https://HOST/PATH", "http://HOST/PATH", "${env:NAME}", "${file:PATH}")
HOOK_SCHEMES = ("https://", "http://", "${")


def read_hooks(keys: Keys) -> tuple[Hook, ...]:
    """The hooks of a target: of each key a mapping, or a list of them."""
    return tuple(hook for when in When for hook in _hooks_of(keys, when))


def _hooks_of(keys: Keys, when: When) -> Iterator[Hook]:
    value = keys.entries.get(when)
    if value is None:
        return
    items = value.items if value.kind == "a list" else (value,)
    for number, item in enumerate(items, 1):
        name = f"{when}[{number}]" if len(items) > 1 else str(when)
        if item.kind != "a mapping":
            wanted = "a mapping, or a list of mappings"
            error = findings.wrong_type(item.at, key=name, wanted=wanted, found=item.kind)
            keys.errors.append(error)
        else:
            yield _hook(Keys(item, f"{name} of {keys.where}", keys.errors, f"{name}."), when, name)


def _hook(keys: Keys, when: When, name: str) -> Hook:
    keys.check(HOOK_KEYS)
    plain = Hook(when, name)
    if "command" in keys.entries:
        todo = "A hook is a command or a webhook; write two of them in a list."
        keys.needless(("webhook", *OF_WEBHOOKS), "a command", todo)
    elif "webhook" not in keys.entries:
        keys.missing("webhook", why="it tells a URL, or runs a `command`")
    return replace(
        plain,
        command=_command(keys),
        webhook=read_url(keys, "webhook"),
        body=_body(keys),
        headers=tuple(read_headers(keys, facts=tuple(Fact))),
        timeout=keys.span("timeout") or plain.timeout,
    )


def _command(keys: Keys) -> str:
    """
    A command as it is given to the shell.

    A reference to a secret would be seen in the list of processes; and the shell has its own way.
    """
    text = keys.text("command") or ""
    if "${env:" in text or "${file:" in text:
        todo = (
            "The command has the environment of the run, and can read a file: `$NAME`, `$(cat "
            "PATH)`."
        )
        at, where = keys.at("command"), "a command"
        keys.errors.append(findings.needless_key(at, key="${…}", where=where, todo=todo))
    return text


def read_url(keys: Keys, name: str) -> str:
    """The URL that something is sent to; it is a secret as a whole: no message shows it."""
    text = (keys.text(name) or "").strip()
    at, key = replace(keys.at(name), text=""), keys.full_name(name)
    if (wrong := bad_reference(text)) is not None:
        keys.errors.append(findings.bad_secret(at, key=key, value=wrong))
    elif has_password(text):
        keys.errors.append(findings.password_written_out(at, key=key))
    elif text and not text.startswith(HOOK_SCHEMES):
        keys.errors.append(findings.bad_value(at, key=key, value="…", known=HOOK_FORMS))
    return text


def _body(keys: Keys) -> str:
    value = keys.entries.get("body")
    return "" if value is None else json.dumps(_plain(keys, value), ensure_ascii=False)


def _plain(keys: Keys, value: Value) -> Any:
    """A part of a body as plain values."""
    if value.kind == "a mapping":
        return {key: _plain(keys, one) for key, one in value.entries.items()}
    if value.kind == "a list":
        return [_plain(keys, one) for one in value.items]
    if value.kind == "true or false":
        return value.text.lower() in ("true", "yes", "on")
    if value.kind == "nothing":
        return None
    if value.kind == "a number":
        try:
            return json.loads(value.text)
        except ValueError:  # YAML has more ways to write one
            return value.text
    _check_template(keys, value, "body", tuple(Fact))
    return value.text


def read_headers(keys: Keys, facts: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Headers of a request; with ``facts``, these have places in them."""
    section = keys.section("headers", f"headers of {keys.where}")
    for name in section.entries if section is not None else ():
        assert section is not None
        text = section.text(name)
        if text is not None:
            _check_template(keys, section.entries[name], f"headers.{name}", facts)
            yield name, text


def _check_template(keys: Keys, value: Value, key: str, facts: Collection[str]) -> None:
    """Note what is neither a fact nor a reference to a secret."""
    at, key = replace(value.at, text=""), keys.full_name(key)
    if (wrong := bad_reference(value.text)) is not None:
        keys.errors.append(findings.bad_secret(at, key=key, value=wrong))
    for name in PLACE.findall(value.text) if facts else ():
        if name not in facts:
            known = tuple(f"{{{fact}}}" for fact in facts)
            error = findings.bad_value(at, key=key, value=f"{{{name}}}", known=known)
            keys.errors.append(error)
