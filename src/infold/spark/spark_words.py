"""What Spark says of an error, also where Java has it inside of one of another class."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

_MOST = 500
_HIDDEN = re.compile(r"\bSpark\w*Exception: (\[([A-Z][A-Z0-9_.]*)\].*)")
"""
An error with a condition in the text of another: what is computed to be broadcast fails with a
``java.util.concurrent.ExecutionException``, which PySpark does not know.
"""


def words_and_condition(error: PySparkException | Py4JError) -> tuple[str, str] | None:
    """Spark's message without its stack trace, and its condition; None: it is not Spark's."""
    if isinstance(error, PySparkException):
        lines = [line for line in str(error).splitlines() if line.strip()]
        what = lines[0] if lines else type(error).__name__
        return what[:_MOST], error.getCondition() or type(error).__name__
    hidden = _HIDDEN.search(str(error))
    return (hidden[1].strip()[:_MOST], hidden[2]) if hidden else None
