"""What is slow to import is imported while a JVM starts, and not before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

START = """
import subprocess, sys
from pathlib import Path
from infold.spark.jvm import gateway
from infold.spark.jvm.spark_session import start

imported = []

class NoJvm(subprocess.Popen):
    def __init__(self, command, **options):
        if "org.apache.spark.launcher.Main" not in command:  # which only says how to start one
            imported.append("pyspark" in sys.modules)
            command = [sys.executable, "-c", ""]
        super().__init__(command, **options)

gateway.subprocess.Popen = NoJvm
folder = Path(sys.argv[1])
try:
    start(folder / "w", folder / "c.db", meanwhile=lambda: imported.append("meanwhile"))
except Exception as error:
    assert "before it was ready" in str(error), error
print(imported, "pyspark.testing.utils" in sys.modules)
"""


@pytest.mark.spark
def test_the_jvm_starts_before_pyspark_is_imported(tmp_path: Path) -> None:
    """Its import takes as long as a tenth of the JVM's start, on another core."""
    done = subprocess.run(
        [sys.executable, "-c", START, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1:] == ["[False, 'meanwhile'] True"], done.stderr
