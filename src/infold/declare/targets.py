"""``targets`` of infold.yml."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from infold.core import target as engines
from infold.core.hooks import PLACE, Fact, Hook, Lineage, When
from infold.core.interval import SECOND
from infold.core.model import Source
from infold.core.object_store import (
    OPTION_KINDS,
    SCHEMES,
    StoreKind,
    form_of,
    is_url,
    kind_by_name,
    kind_of,
    scheme_of,
    split,
)
from infold.core.storages import Storage
from infold.core.target import (
    LONGEST_SCHEMA,
    MASTER,
    REMOTE,
    Apply,
    Engine,
    HideTechnical,
    Publish,
    Target,
)
from infold.core.yaml_tree import Value
from infold.declare.catalogs import (
    BUCKETS,
    check_warehouse,
    read_catalog,
    read_stores,
    refuse_beside_delta,
    refuse_not_together,
)
from infold.declare.erasures import (
    CERTIFICATE_KEY,
    KEY_OF_TARGET,
    NEVER,
    PURGE_OF_TARGET,
    read_purge,
    read_secret,
)
from infold.declare.keys import NAME, Keys
from infold.messages import findings
from infold.messages.catalog_errors import secret_written_out
from infold.messages.errors import InfoldError
from infold.system.secrets import REFERENCE, bad_reference, has_password

KEYS = (
    *("warehouse", "ledger", "ledger_schema", "storage", "protected", "apply", "publish", "spark"),
    *(
        "catalog",
        "storage_options",
        "engine",
        "environment_ttl",
        "retain",
        "environment_from_branch",
        "keep_old",
        "hide_technical",
        *When,
        "lineage",
        KEY_OF_TARGET,
        PURGE_OF_TARGET,
        CERTIFICATE_KEY,
    ),
)
MASTERS = ("master", "spark.master")
REMOTES = ("remote", "spark.remote")
STARTED_WITH = ("spark.driver.memory", "spark.driver.extra", "spark.driver.cores")
"""Settings of a driver's JVM at its start."""
SQLITE = "sqlite:///"
LEDGERS = (SQLITE, "postgresql+psycopg://", "postgresql://", "${")
FORMS = ("sqlite:///FILE", "postgresql+psycopg://USER@HOST/DATABASE")
RESERVED = "pg_"
"""PostgreSQL refuses to make such a schema."""
SCHEMA_FORM = (
    f"letters, digits and underscores, a letter first, at most {LONGEST_SCHEMA}, "
    f"and not {RESERVED} at the beginning, which is PostgreSQL's own"
)


def read_target(
    name: str, keys: Keys, sources: Mapping[str, Source], broken: Collection[str]
) -> Target:
    """One target; ``sources`` are all those of the project, but for those that are ``broken``."""
    keys.check(KEYS)
    if not NAME.match(name):
        form = "letters, digits and underscores, a letter first"
        keys.errors.append(findings.bad_name(keys.value.at, what="target", name=name, form=form))
    plain = Target(name)
    warehouse, catalog = keys.text("warehouse") or "", read_catalog(keys)
    storage = Storage(keys.choice("storage", tuple(Storage)) or plain.storage)
    check_warehouse(keys, warehouse, catalog, storage)
    engine = read_engine(keys)
    hide = keys.choice("hide_technical", tuple(HideTechnical))
    target = Target(
        name=name,
        warehouse=(warehouse.rstrip("/") if is_url(warehouse) else warehouse) or plain.warehouse,
        ledger=_ledger(keys) or plain.ledger,
        ledger_schema=_schema(keys),
        storage=storage,
        catalog=catalog,
        stores=read_stores(keys),
        protected=keys.flag("protected", default=False),
        apply=Apply(keys.choice("apply", tuple(Apply)) or plain.apply),
        publish=Publish(keys.choice("publish", tuple(Publish)) or plain.publish),
        engine=engine,
        spark=_spark(keys, engine=engine),
        hide_technical=HideTechnical(hide) if hide else None,
        environment_ttl=_lifetime(keys, "environment_ttl", plain.environment_ttl),
        keep_old=_lifetime(keys, "keep_old", plain.keep_old),
        environment_from_branch=keys.flag("environment_from_branch", default=False),
        hooks=read_hooks(keys),
        lineage=read_lineage(keys),
        erasure_secret=read_secret(keys, KEY_OF_TARGET),
        retain=keys.retain(),
        erasure_purge=read_purge(keys),
        erasure_certificate_key=read_secret(keys, CERTIFICATE_KEY),
    )
    refuse_not_together(target, keys)
    refuse_beside_delta(target, keys)
    refuse_other_kinds(target, keys, sources.values(), complete=not broken)
    refuse_unshared(target, keys, sources.values(), complete=not broken)
    return target


def _ledger(keys: Keys) -> str | None:
    """
    The ledger's URL, with references to secrets and no secret.

    No message shows a URL in which there may be a password.
    """
    text = keys.text("ledger")
    if text is None:
        return None
    at = replace(keys.at("ledger"), text="")
    wrong = bad_reference(text)
    if wrong is not None:
        keys.errors.append(findings.bad_secret(at, key="ledger", value=wrong))
    elif has_password(text):
        keys.errors.append(findings.password_written_out(at, key="ledger"))
    elif not _is_ledger(text):
        scheme, begun, _ = text.partition("://")
        shown = f"{scheme}://…" if begun else "…" if "@" in text else text
        keys.errors.append(findings.bad_value(at, key="ledger", value=shown, known=FORMS))
    return text


def ledger_fault(url: str) -> str | None:
    """Why infold.yml may not have a ledger's URL, without showing it; None if it may."""
    if (wrong := bad_reference(url)) is not None:
        return f"{wrong} is no reference to a secret: ${{env:NAME}} or ${{file:PATH}} is"
    if has_password(url):
        return "a password is written out in it; name where it comes from: ${env:NAME} in its place"
    if not _is_ledger(url):
        return f"it is none of {', '.join(FORMS)}"
    return None


def _is_ledger(url: str) -> bool:
    """Whether a URL has the form of a ledger's; the place of a file is no secret."""
    return url.startswith(LEDGERS) and not (url.startswith(SQLITE) and REFERENCE.search(url))


def is_schema(name: str) -> bool:
    """Whether a ledger's schema can have the name; see ``SCHEMA_FORM``."""
    return bool(NAME.match(name) and len(name) <= LONGEST_SCHEMA and not name.startswith(RESERVED))


def _schema(keys: Keys) -> str:
    """The schema of a ledger on a server."""
    name = keys.text("ledger_schema") or ""
    at = keys.at("ledger_schema")
    if name and not is_schema(name):
        keys.errors.append(findings.bad_name(at, what="schema", name=name, form=SCHEMA_FORM))
    elif name and (keys.text("ledger") or SQLITE).startswith(SQLITE):
        todo = "A ledger in PostgreSQL has one. Name that by `ledger`, or leave this out."
        keys.errors.append(
            findings.needless_key(at, key="ledger_schema", where="a ledger in a file", todo=todo)
        )
    return name


def _lifetime(keys: Keys, name: str, default: int | None) -> int | None:
    value = keys.entries.get(name)
    if value is not None and value.text == NEVER:
        return None
    return keys.span(name) or default


def _spark(keys: Keys, *, engine: Engine) -> tuple[tuple[str, str], ...]:
    section = keys.section("spark", f"spark of {keys.where}")
    if section is None:
        return ()
    settings = []
    for key, value in section.entries.items():
        if key in REMOTES:
            todo = "The target has a key of its own for it: `engine: {remote: sc://HOST:PORT}`."
            section.needless((key,), section.where, todo)
        elif key in MASTERS:
            todo = f"The target has a key of its own for it: `engine: {{master: {value.text}}}`."
            section.needless((key,), section.where, todo)
        elif (engine.submitted or engine.remote) and key.startswith(STARTED_WITH):
            done = "Submit with" if engine.submitted else "Start the server with"
            todo = f"That JVM is there before infold.yml is read. {done} `--conf {key}=…`."
            section.needless((key,), section.where, todo)
        elif not key.startswith("spark."):
            at, known = section.key_at(key), ("spark.sql.shuffle.partitions",)
            keys.errors.append(findings.unknown_key(at, key, section.where, known))
        elif value.kind in ("a list", "a mapping", "nothing"):
            keys.errors.append(
                findings.wrong_type(value.at, key=key, wanted="text", found=value.kind)
            )
        else:
            settings.append((key, value.text))
            for _, refused, required in engines.changed_settings({key: value.text}):
                keys.errors.append(findings.fixed_setting(value.at, key, refused, required))
    return tuple(settings)


PLACES = ("remote", "submitted", "master")
"""Keys of which a target has one: each says what computes."""
ENGINE_KEYS = (*PLACES, "shared_disk", "executor_wait", "idle", "start")
_OF_ONE_THAT_STAYS = ("idle", "start")
PARAMETERS = ("token", "use_ssl", "user_id", "user_agent")
"""What the address of a server may have behind it; its sessions are infold's to name."""
REMOTE_FORM = "sc://HOST:PORT/;token=${env:NAME}"
ENGINE_FORMS = ("spark://HOST:PORT", "yarn", "k8s://URL", "local[N]")


def read_engine(keys: Keys) -> Engine:
    """The engine of a target; ``local`` where nothing is said."""
    value = keys.entries.get("engine")
    if value is None:
        return Engine()
    if value.kind == "text":
        if value.text != "local":
            keys.errors.append(
                findings.bad_value(value.at, key="engine", value=value.text, known=("local",))
            )
        return Engine()
    section = keys.section("engine", f"engine of {keys.where}")
    if section is None:
        return Engine()
    section.check(ENGINE_KEYS)
    plain, remote = Engine(), _remote(section)
    submitted = section.flag("submitted", default=False)
    places = [key for key in PLACES if key in section.entries and (key != "submitted" or submitted)]
    if places[1:]:
        section.needless(places[1:], section.where, _WHY_NEEDLESS[places[0]])
    master = section.text("master") if places == ["master"] else None
    if not (places or (section.entries and section.entries.keys() <= {*_OF_ONE_THAT_STAYS})):
        section.missing("master")
    elif master is not None and not MASTER.fullmatch(master):
        at = section.at("master")
        keys.errors.append(findings.bad_value(at, key="master", value=master, known=ENGINE_FORMS))
        master = None
    wait, idle = section.span("executor_wait"), section.span("idle")
    if remote:
        todo = "Whether there are executors is the server's. Leave it out."
        section.needless(("executor_wait",), section.where, todo)
    engine = Engine(
        master=master or plain.master,
        shared_disk=section.flag("shared_disk", default=False),
        executor_wait=plain.executor_wait if wait is None else max(1, wait // SECOND),
        submitted=submitted and not remote,
        idle=plain.idle if idle is None else max(1, idle // SECOND),
        start=section.choice("start", (engines.EARLY, engines.WHEN_NEEDED, engines.OFF))
        or plain.start,
        remote=remote,
    )
    if master is not None or engine.is_cluster:
        _refuse_needless(section, engine)
    return engine


def refuse_unshared(
    target: Target, keys: Keys, sources: Collection[Source], *, complete: bool
) -> None:
    """
    Note a cluster of which nothing says that its executors have the folders of a target.

    Executors reach places in an object store by themselves. Which places there are is not known
    without ``complete`` sources, or where the tables of a catalog are sources.
    """
    engine = target.engine
    if not engine.is_cluster or engine.shared_disk:
        return
    read = all(one.path is not None and is_url(one.path) for one in sources)
    if target.in_store and (read or not complete):
        return
    key = "remote" if engine.remote else "submitted" if engine.submitted else "master"
    at = keys.entries["engine"].entries[key].at
    keys.errors.append(findings.not_shared(at, target=keys.where))


def _refuse_needless(section: Keys, engine: Engine) -> None:
    """Note keys about executors where there are none, and about a Spark of this machine."""
    if engine.is_cluster:
        todo = "Only a Spark of this machine stays for the next command. Leave it out."
        section.needless(_OF_ONE_THAT_STAYS, section.where, todo)
        return
    where = f"{section.where}: {engine.master} is a Spark of this machine"
    todo = "It is about the executors of a cluster. Leave it out."
    section.needless(("shared_disk", "executor_wait"), where, todo)


_WHY_NEEDLESS = {
    "submitted": "spark-submit chooses the master of its application. Leave one of both out.",
    "remote": "The server has its Spark already. Leave one of both out.",
}
"""Why what a target computes on leaves no room for another key."""


def _remote(section: Keys) -> str:
    """The address of a server, with references to secrets and no secret."""
    text = section.text("remote")
    if text is None:
        return ""
    at = replace(section.at("remote"), text="")  # a token may be written out in it
    match, wrong = REMOTE.fullmatch(text), bad_reference(text)
    more = (match["more"] or "").strip(";") if match else ""
    parameters = dict(one.partition("=")[::2] for one in more.split(";") if one)
    refused = [name for name, value in parameters.items() if name not in PARAMETERS or not value]
    token = parameters.get("token", "")
    if wrong is not None:
        section.errors.append(findings.bad_secret(at, key="remote", value=wrong))
    elif match is None or refused:
        shown = text.partition(";")[0] + "".join(f";{name}=…" for name in refused[:1])
        known = (REMOTE_FORM,)
        section.errors.append(findings.bad_value(at, key="remote", value=shown, known=known))
    elif token and not REFERENCE.fullmatch(token):
        section.errors.append(secret_written_out(at, key="remote", form=REMOTE_FORM))
    else:
        return text
    return ""


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
            form = "a mapping, or a list of mappings"
            error = findings.wrong_type(item.at, key=name, wanted=form, found=item.kind)
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


LINEAGE_KEYS = ("url", "file", "headers", "namespace", "timeout")
OF_REQUESTS = ("headers", "timeout")


def read_lineage(keys: Keys) -> Lineage | None:
    """What a target declares; None: nothing is sent."""
    section = keys.section("lineage", f"lineage of {keys.where}")
    if section is None:
        return None
    section.check(LINEAGE_KEYS)
    plain = Lineage()
    if "url" in section.entries:
        if "file" in section.entries:
            todo = "Events go to a URL or into a file; leave one of them out."
            section.needless(("file",), "events with a `url`", todo)
    elif "file" not in section.entries:
        section.missing("url", why="events go to a URL, or into a `file`")
    else:
        todo = "It is of requests to a `url`. Leave it out."
        section.needless(OF_REQUESTS, "events in a file", todo)
    return replace(
        plain,
        url=read_url(section, "url"),
        file=section.text("file") or "",
        headers=tuple(read_headers(section)),
        namespace=section.text("namespace") or plain.namespace,
        timeout=section.span("timeout") or plain.timeout,
    )


_OF_EXPORTS = "Of a bucket that only exports go to, they stand in `storage_options.buckets`."


def refuse_other_kinds(
    target: Target, keys: Keys, sources: Collection[Source], *, complete: bool
) -> None:
    """
    Note each option that no library looks at for the places that it is for.

    Of one bucket that is always a mistake. Options of all may be those of several stores, as far as
    places are in them. Which places there are is not known without ``complete`` sources, or where
    the tables of a catalog are sources; and if none is in a store, all options are for exports.
    """
    looked = Keys(keys.value, keys.where, [])  # what is no mapping has its error already
    section = looked.section("storage_options", f"storage_options of {keys.where}")
    if section is None:
        return
    paths = (target.warehouse, *(one.path or "" for one in sources))
    urls = [path for path in paths if is_url(path) and scheme_of(path) in SCHEMES]
    own = section.section(BUCKETS, f"buckets of {section.where}")
    for name, bucket in own.sections("bucket") if own else ():
        kinds = {kind_of(url) for url in urls if split(url)[0] == name}
        keys.errors.extend(_other_options(bucket, kinds or {_kind_of_named(name, bucket)}, ""))
    if complete and not any(one.path is None and one.url is None for one in sources):
        named = own.entries if own else ()
        kinds = {kind_of(url) for url in urls if split(url)[0] not in named}
        keys.errors.extend(_other_options(section, kinds, _OF_EXPORTS))


def _kind_of_named(name: str, bucket: Keys) -> StoreKind:
    """Whose store a bucket is in that no place names: the first option that fits its name."""
    if (kind := kind_by_name(name)) is not None:
        return kind
    kinds = (OPTION_KINDS.get(key, StoreKind.AZURE) for key in bucket.entries)
    return next((kind for kind in kinds if kind is not StoreKind.AZURE), StoreKind.S3)


def _other_options(section: Keys, kinds: Collection[StoreKind], todo: str) -> Iterator[InfoldError]:
    where = f"{section.where}, whose places are in {_shown_kinds(kinds)}"
    for key in section.entries if kinds else ():
        kind = OPTION_KINDS.get(key)
        if kind is not None and kind not in kinds:
            more = f"It is for places such as {form_of(kind)}. {todo}".strip()
            yield findings.needless_key(section.key_at(key), key=key, where=where, todo=more)


def _shown_kinds(kinds: Iterable[StoreKind]) -> str:
    return " and ".join(f"{kind}://" for kind in sorted(kinds))
