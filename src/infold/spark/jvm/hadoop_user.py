"""Who a JVM is in HDFS: Hadoop asks the environment once, when Spark starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from infold.lake.stores.settings import HDFS_USER, HDFS_USER_SETTING
from infold.messages import store_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def environment(settings: Mapping[str, str]) -> Mapping[str, str]:
    """What the environment of a new JVM needs to be that user."""
    return {HDFS_USER: settings[HDFS_USER_SETTING]} if HDFS_USER_SETTING in settings else {}


def refuse_other(running: SparkSession, settings: Mapping[str, str]) -> None:
    """Raise if a JVM that runs is another user than the one of these settings."""
    expected_user = settings.get(HDFS_USER_SETTING)
    if not expected_user:
        return
    jvm: Any = running.sparkContext._jvm  # noqa: SLF001 (no public way)
    group = jvm.org.apache.hadoop.security.UserGroupInformation
    current_user = group.getCurrentUser().getShortUserName()
    if current_user != expected_user:
        raise store_errors.other_user(one=current_user, other=expected_user)
