"""All stored rows of a model, or all rows of a view, judged by its audits."""

from __future__ import annotations

from pyspark.sql import DataFrame

from infold.core.audits import AuditResult
from infold.core.project import Node
from infold.spark.audits.predicates import refuse_wrong
from infold.spark.audits.row_pass import judged
from infold.spark.audits.table_pass import Judged, judge
from infold.spark.audits.tables import newest_rows
from infold.spark.step_context import Work


def audit_stored(work: Work, node: Node, as_of: int) -> tuple[AuditResult, ...] | None:
    """
    What the audits of a model find in its newest version; None where it is not built.

    Raises InfoldError where an audit cannot be judged.
    """
    newest = work.ledger.newest_versions()
    rows = newest_rows(work, node.name, newest)
    if rows is None:
        return None
    refuse_wrong(node.name, node.model.audits, rows)
    found = {
        one.audit: one
        for one in judged(
            node.name, rows, [one for one in node.model.audits if one.of_one_row], stored=True
        )
    }

    def other(name: str) -> DataFrame | None:
        return newest_rows(work, name, newest)

    on = Judged(node, rows, None, other, work.named_view, as_of, stored=True)
    for audit in node.model.audits:
        if not audit.of_one_row:
            found[audit.name] = judge(audit, on)
    return tuple(found[audit.name] for audit in node.model.audits)
