"""``engine`` of a target in infold.yml."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from infold.core.engines import MASTER, REMOTE, Engine
from infold.core.interval import SECOND
from infold.core.model import Source
from infold.core.object_store import is_url
from infold.core.target import Target
from infold.declare.keys import Keys
from infold.messages import findings
from infold.messages.catalog_errors import secret_written_out
from infold.system.secrets import REFERENCE, bad_reference

PLACES = ("remote", "submitted", "master")
"""Keys of which a target has one: each says what computes."""
ENGINE_KEYS = (*PLACES, "shared_disk", "executor_wait", "idle")
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
    said = [key for key in PLACES if key in section.entries and (key != "submitted" or submitted)]
    if said[1:]:
        section.needless(said[1:], section.where, _OTHERS[said[0]])
    master = section.text("master") if said == ["master"] else None
    if not (said or set(section.entries) == {"idle"}):
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
        section.needless(("idle",), section.where, todo)
        return
    where = f"{section.where}: {engine.master} is a Spark of this machine"
    todo = "It is about the executors of a cluster. Leave it out."
    section.needless(("shared_disk", "executor_wait"), where, todo)


_OTHERS = {
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
    found, wrong = REMOTE.fullmatch(text), bad_reference(text)
    more = (found["more"] or "").strip(";") if found else ""
    given = dict(one.partition("=")[::2] for one in more.split(";") if one)
    others = [name for name, value in given.items() if name not in PARAMETERS or not value]
    token = given.get("token", "")
    if wrong is not None:
        section.errors.append(findings.bad_secret(at, key="remote", value=wrong))
    elif found is None or others:
        shown = text.partition(";")[0] + "".join(f";{name}=…" for name in others[:1])
        known = (REMOTE_FORM,)
        section.errors.append(findings.bad_value(at, key="remote", value=shown, known=known))
    elif token and not REFERENCE.fullmatch(token):
        section.errors.append(secret_written_out(at, key="remote", form=REMOTE_FORM))
    else:
        return text
    return ""
