"""
The jar by which Spark reads and writes objects in Azure: Hadoop's connector, in its version.

What it uses, Spark has. Maven names more for an older protocol (``wasb``), and OpenSSL.
"""

from __future__ import annotations

from infold.spark.tables.jar import Jar

AZURE_JARS = (
    Jar(
        "org.apache.hadoop",
        "hadoop-azure",
        "3.4.2",
        "f02ab756037abaecc45ea1869144ad3a69e25ccd84062bc37805837ca254e21c",
    ),
)
"""Only where files of sources, or tables, are in such a store."""
