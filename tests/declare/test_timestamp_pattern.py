"""Patterns of times are refused where Spark would refuse them in the middle of a run, or guess."""

from __future__ import annotations

import pytest

from infold.declare.sources import find_pattern_fault

GOOD = """
yyyy-MM-dd HH:mm:ss | yyyyMMddHHmmssSSS | dd/MMM/yyyy:HH:mm:ss Z | yyyy-MM-dd'T'HH:mm:ss.SSSSSSSXXX
d MMMM yyyy, h:mm a | yyyy-MM-dd[ HH:mm[:ss]] | yyyy-MM-dd HH:mm:ss VV | O yyyy | dd'th' MMMM
yyyy年MM月dd日 | yyyy-MM-dd'''T' | y! | G yyyy DDD | yyyy'MMMMM{#' | [yyyy | x yyyy
ss.S' is left open
"""


@pytest.mark.parametrize("pattern", GOOD.strip().replace("\n", " | ").split(" | "))
def test_patterns_that_spark_reads(pattern: str) -> None:
    """As in the logs of web servers, and others."""
    assert find_pattern_fault(pattern) == ""


BAD = {
    "EEE, dd MMM yyyy": "E: Spark writes it and does not read it",
    "QQQ yyyy": "Q: Spark writes",
    "YYYY-MM-dd": "Y: Spark reads no weeks",
    "yyyy-'W'ww": "w: Spark reads no weeks",
    "uuuu-MM-dd": "u: Spark reads no weeks",
    "yyyy-MM-dd HH:mm:ss z": "z: names of zones as in PST mean several",
    "yyyyyyy": "yyyyyyy: it is y or yy or yyy or yyyy",
    "MMMMM": "MMMMM: it is M or MM or MMM or MMMM",
    "HHH": "HHH: it is H or HH",
    "VVV": "VVV: it is VV",
    "OO": "OO: it is O or OOOO",
    "yyyy-MM-ddTHH:mm": "T is no letter of a pattern",
    "n": "n is no letter of a pattern",
    "{yyyy}": "{ is reserved",
    "yyyy]": "a ] has no [ before it",
    "yyyy-MM-dd'T": "a quote has no end",
    "HHmmssSSSSSSSSS": "digits finer than microseconds",
    "--": "it has no letter",
    "'yyyy'": "it has no letter",
}


@pytest.mark.parametrize("pattern", BAD)
def test_patterns_that_spark_does_not_read(pattern: str) -> None:
    """Each says why."""
    assert find_pattern_fault(pattern).startswith(BAD[pattern])
