"""``engine`` of a target in infold.yml."""

from __future__ import annotations

from infold.core.engines import MASTER, Engine
from infold.core.interval import SECOND
from infold.declare.keys import Keys
from infold.messages import findings

KEYS = ("master", "submitted", "shared_disk", "executor_wait", "idle")
REMOTE = "remote"
FORMS = ("spark://HOST:PORT", "yarn", "k8s://URL", "local[N]")


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
    section.check((*KEYS, REMOTE))
    if REMOTE in section.entries:
        keys.errors.append(findings.later_engine(section.key_at(REMOTE), key=REMOTE))
    plain, master = Engine(), section.text("master")
    submitted = section.flag("submitted", default=False)
    if submitted and master is not None:
        todo = "spark-submit chooses the master of its application. Leave one of both out."
        at, where = section.key_at("master"), section.where
        keys.errors.append(findings.needless_key(at, key="master", where=where, todo=todo))
        master = None
    elif master is None and not (
        submitted or REMOTE in section.entries or set(section.entries) == {"idle"}
    ):
        section.missing("master")
    elif master is not None and not MASTER.fullmatch(master):
        at = section.at("master")
        keys.errors.append(findings.bad_value(at, key="master", value=master, known=FORMS))
        master = None
    wait, idle = section.span("executor_wait"), section.span("idle")
    engine = Engine(
        master=master or plain.master,
        shared_disk=section.flag("shared_disk", default=False),
        executor_wait=plain.executor_wait if wait is None else max(1, wait // SECOND),
        submitted=submitted,
        idle=plain.idle if idle is None else max(1, idle // SECOND),
    )
    if engine.is_cluster and not engine.shared_disk:
        at = section.at("submitted" if submitted else "master")
        keys.errors.append(findings.not_shared(at, target=keys.where))
    return engine
