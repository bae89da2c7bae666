"""
The statements about what audits found: see ``statements``, which has all others.

Only ``generate_sql`` and the tests use this file.
"""

from __future__ import annotations

from sqlalchemy import ClauseElement, bindparam, delete, insert, literal_column, or_, select

from infold.ledger import schema as s


def audit_statements() -> dict[str, ClauseElement]:
    """What was found is replaced by what is found of the same stretch; what passed, by anything."""
    audit = s.audits.c
    of_model = audit.model == bindparam("model")
    return {
        "audits": select(s.audits).order_by(audit.model, audit.stored, audit.audit),
        "add_audit": insert(s.audits),
        "drop_judged_audits": delete(s.audits).where(
            of_model,
            audit.stored == bindparam("stored"),
            or_(
                audit.state != literal_column("'failed'"),
                (audit.range_start < bindparam("until")) & (audit.range_end > bindparam("since")),
            ),
        ),
        "erase_audits": delete(s.audits).where(of_model),
    }
