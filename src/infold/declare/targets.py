"""``targets`` of infold.yml."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from infold.core import fixed_settings
from infold.core.engines import Engine
from infold.core.hooks import When
from infold.core.model import Source
from infold.core.object_store import is_url
from infold.core.storages import Storage
from infold.core.target import LONGEST_SCHEMA, Apply, HideTechnical, Publish, Target
from infold.declare.catalogs import read_catalog, refuse_not_together
from infold.declare.delta import refuse_beside_delta
from infold.declare.engines import read_engine, refuse_unshared
from infold.declare.hooks import read_hooks
from infold.declare.keys import NAME, Keys
from infold.declare.lineage import read_lineage
from infold.declare.storage_options import check_warehouse, read_stores
from infold.declare.store_kinds import refuse_other_kinds
from infold.messages import findings
from infold.system.secrets import REFERENCE, bad_reference, has_password

KEYS = (
    *("warehouse", "ledger", "ledger_schema", "storage", "protected", "apply", "publish", "spark"),
    *(
        "catalog",
        "storage_options",
        "engine",
        "environment_ttl",
        "environment_from_branch",
        "keep_old",
        "hide_technical",
        *When,
        "lineage",
    ),
)
NEVER = "never"
"""In place of a length of time: no end."""
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
    found = Target(
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
    )
    refuse_not_together(found, keys)
    refuse_beside_delta(found, keys)
    refuse_other_kinds(found, keys, sources.values(), complete=not broken)
    refuse_unshared(found, keys, sources.values(), complete=not broken)
    return found


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
    found = []
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
            found.append((key, value.text))
            for _, refused, required in fixed_settings.changed_settings({key: value.text}):
                keys.errors.append(findings.fixed_setting(value.at, key, refused, required))
    return tuple(found)
