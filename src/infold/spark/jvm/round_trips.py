"""
Fewer round trips between PySpark and the JVM.

A run makes thousands of calls, and what they cost is more than what a few rows cost. Three things
are saved here. PySpark names a Java class on every call (``jvm.functions.col``): each time Py4J
makes two round trips, and the JVM searches a few hundred jars for classes of that name in other
packages. The same columns are made again and again, though they never change, each part of them by
a round trip, and each is deleted by one more. And a list goes to the JVM one element after the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from py4j.java_gateway import GatewayClient, JavaClass, JavaMember, JavaObject, JVMView
from py4j.protocol import INPUT_CONVERTER, register_input_converter

NAMES = (
    "functions",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession",
    "PythonSQLUtils",
    "PythonUtils",
)
"""
The classes, as PySpark writes them; see ``pyspark/sql/functions/builtin.py`` and
``classic/column.py``.
"""

_FUNCTIONS = "org.apache.spark.sql.functions"

FUNCTIONS = frozenset(
    """
    array array_contains array_except bool_or coalesce col collect_list concat contains count
    count_if expr first greatest is_valid_utf8 isnull least length lit make_valid_utf8 max min not
    nullif pmod regexp_extract regexp_replace shiftleft shiftright size struct substring_index sum
    timestamp_micros try_parse_json try_variant_get unix_micros when xxhash64
    """.split()  # noqa: SIM905 (as a list it has fifty lines)
)
"""Functions whose columns follow from their arguments: nothing is drawn or counted in them."""

METHODS = frozenset(
    """
    and apply as asc asc_nulls_last between bitwiseAND cast desc desc_nulls_last divide eqNullSafe
    equalTo geq getField getItem gt isNotNull isNull isin leq like lt minus mod multiply notEqual or
    otherwise plus rlike try_cast when
    """.split()  # noqa: SIM905 (as above)
)
"""The same of a column's methods."""

_PLAIN = (str, int, bool, type(None))
"""
The types of values that are equal in Python if they are in the JVM. Not decimals and floats: 1.0
equals 1.00, and 0.0 equals -0.0.
"""

MOST_KEPT_COLUMNS = 8192
"""How many columns are kept, those used last."""


class KnownCalls:
    """
    The columns that were made in one JVM, by the calls that made them.

    A column never changes, and the JVM numbers its objects and uses no number again. So a call of
    the same method of the same object with the same arguments need not be made again. Columns that
    are built alike from the same names are the same then, however many calls they took.
    """

    def __init__(self) -> None:
        self._results: dict[str, Any] = {}
        self._lock = Lock()  # steps are carried out by several threads

    def result(self, member: JavaMember, arguments: tuple[Any, ...]) -> Any:
        """What a call comes to; it is made unless its result is known."""
        try:
            key = f"{member.target_id} {member.name} {_key(arguments)}"
        except TypeError:
            return member(*arguments)
        with self._lock:
            call_result = self._results.pop(key, None)
            if call_result is not None:
                self._results[key] = call_result  # at the end: the first was used longest ago
                return call_result
        call_result = member(*arguments)
        with self._lock:
            self._results[key] = call_result
            if len(self._results) > MOST_KEPT_COLUMNS:
                del self._results[next(iter(self._results))]
        return call_result

    def column(self, member: JavaMember, arguments: tuple[Any, ...]) -> Any:
        """The same of a call that makes a column, whose methods are looked up here too."""
        java_column = self.result(member, arguments)
        if type(java_column) is JavaObject:
            java_column._known = self  # noqa: SLF001
            java_column.__class__ = JavaColumn
        return java_column


def _key(value: object) -> str:
    """What tells an argument apart. Raises TypeError for those that nothing does."""
    if isinstance(value, JavaObject):
        return f"<{value._get_object_id()}>"  # noqa: SLF001
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_key, value))}]"
    if type(value) in _PLAIN:
        return repr(value)
    raise TypeError(type(value))


class JavaColumn(JavaObject):  # type: ignore[misc]  # py4j has no types
    """A column in the JVM, of which those that are made from it are known."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if name not in METHODS:
            return member
        known = self.__dict__["_known"]
        return lambda *arguments: known.column(member, arguments)


class _Remembered(JavaClass):  # type: ignore[misc]  # py4j has no types
    """A class whose static methods are looked up once."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            self.__dict__[name] = self._quick(member)
            return self.__dict__[name]
        return member

    def _quick(self, member: JavaMember) -> Callable[..., Any]:
        known = self.__dict__["known"]
        if self._fqn == _FUNCTIONS and member.name in FUNCTIONS:
            return lambda *arguments: known.column(member, arguments)
        if member.name == "toSeq":  # a list in the JVM that does not change
            return lambda *arguments: known.result(member, arguments)
        return member  # type: ignore[no-any-return]


def keep_looked_up_classes(jvm: JVMView) -> None:
    """Keep the classes of :data:`NAMES` with the view through which PySpark asks for them."""
    known = KnownCalls()
    for name in NAMES:
        java_class = getattr(jvm, name)
        if isinstance(java_class, JavaClass):
            remembered = _Remembered(java_class._fqn, java_class._gateway_client)  # noqa: SLF001
            remembered.__dict__["known"] = known
            jvm.__dict__[name] = remembered


class ListsAtOnce:
    """Makes Java lists of ten elements in one round trip; Py4J makes one for each element."""

    at_once = 10
    """``java.util.List.of`` takes so many."""

    def __init__(self) -> None:
        self._known: tuple[GatewayClient, JavaMember] | None = None

    def can_convert(self, value: object) -> bool:
        """Whether it is a list that ``List.of`` takes: not empty, and without NULL."""
        if not isinstance(value, list | tuple) or not value:
            return False
        return all(element is not None for element in value)

    def convert(self, value: Sequence[Any], client: GatewayClient) -> Any:
        """The list in the JVM, where nothing changes it."""
        of = self._of(client)
        chunks = [value[at : at + self.at_once] for at in range(0, len(value), self.at_once)]
        if len(chunks) == 1:
            return of(*value)
        java_list = JavaClass("java.util.ArrayList", client)(of(*chunks[0]))
        for chunk in chunks[1:]:
            java_list.addAll(of(*chunk))
        return java_list

    def _of(self, client: GatewayClient) -> JavaMember:
        """``List.of`` of a gateway; looking it up takes a round trip."""
        if self._known is None or self._known[0] is not client:
            self._known = client, JavaClass("java.util.List", client).of
        return self._known[1]


def pass_lists_at_once() -> None:
    """Let lists of all gateways of this process go to the JVM at once."""
    if not any(isinstance(converter, ListsAtOnce) for converter in INPUT_CONVERTER):
        register_input_converter(ListsAtOnce(), prepend=True)
