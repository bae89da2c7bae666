"""
Fewer round trips to the JVM.

PySpark names a Java class on every call (``jvm.functions.col``). Py4J answers each time anew, by
two round trips, and the JVM by looking through a few hundred jars for classes of that name in
other packages. A run makes thousands of such calls, so the classes in use are looked up once here
and kept, with the methods that were called.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JVMView

NAMES = (
    "functions",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession",
    "PythonSQLUtils",
    "PythonUtils",
)
"""As PySpark writes them; see ``pyspark/sql/functions/builtin.py`` and ``classic/column.py``."""


class _Remembered(JavaClass):  # type: ignore[misc]  # py4j has no types
    """A class whose static methods are looked up once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


def remember(jvm: JVMView) -> None:
    """Keep the classes of :data:`NAMES` with the view through which PySpark asks for them."""
    for name in NAMES:
        found = getattr(jvm, name)
        if isinstance(found, JavaClass):
            jvm.__dict__[name] = _Remembered(found._fqn, found._gateway_client)  # noqa: SLF001
