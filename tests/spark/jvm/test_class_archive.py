"""Making the archive of classes takes what nobody else wants of the processors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AUTOGROUP = Path("/proc/self/autogroup")

GIVES_WAY = f"""
import os
from pathlib import Path
from infold.spark.jvm.class_archive import give_way
give_way(os.getpid())
print(Path("{AUTOGROUP}").read_text())
"""


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="processors are shared among processes")
@pytest.mark.parametrize(("priority", "group"), [(19, 19), (0, 0)])
def test_its_session_gives_way_if_it_has_the_lowest_priority(priority: int, group: int) -> None:
    """The priority alone counts among the processes of one session; a make target has the usual."""
    found = subprocess.run(
        ["nice", "-n", f"{priority}", sys.executable, "-c", GIVES_WAY],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )

    assert found.stdout.split()[-2:] == ["nice", f"{group}"]
