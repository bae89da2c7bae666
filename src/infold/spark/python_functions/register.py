"""Python functions of a project made known to a Spark session, each once by its own name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf
from pyspark.sql.pandas.types import to_arrow_type

from infold.core.functions import FunctionCode
from infold.core.project import Node
from infold.spark.python_functions.calls import ArrowCall

_known: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def register_functions(spark: SparkSession, nodes: Iterable[Node]) -> None:
    """Make the Python functions known that some models call; those that are known stay."""
    known = _known.setdefault(spark, set())
    for node in nodes:
        for called in node.model.functions:
            code = called.python
            if code is not None and code.registered not in known:
                spark.udf.register(code.registered, _arrow_function(code))
                known.add(code.registered)


def scalar_function(call: Callable[..., pa.Array], returns: T.DataType) -> Any:
    """A function of Spark's over columns of Arrow: batches of rows -> as many results."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it prefers type hints, which say no type
        return arrow_udf(call, returns, ArrowUDFType.SCALAR)


def _arrow_function(code: FunctionCode) -> Any:
    returns = T.DataType.fromDDL(code.returns)
    function = scalar_function(ArrowCall(code, to_arrow_type(returns)).__call__, returns)
    return function if code.deterministic else function.asNondeterministic()
