"""An HDFS with two NameNodes: the starter's day goes on when the other one becomes active."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.servers.hdfs import Hdfs, two_namenodes
from tests.servers.in_store import shop_in
from tests.servers.moved import retarget

from infold import api

pytestmark = [pytest.mark.servers, pytest.mark.spark]


def test_the_other_one_becomes_active(
    hdfs: Hdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans turn to it by the addresses it is given, Spark by Hadoop's own files."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    api.close()
    with two_namenodes(hdfs, tmp_path / "dfs") as pair:
        pair.write_site(tmp_path)
        shop = shop_in(pair, tmp_path / "shop")
        shop("run")
        pair.fail_over()
        shop.put("late.json", "late")
        assert "1 new file" in shop("plan")
        shop("run")
        assert "equal a full rebuild" in shop("verify")
        assert "late" in shop("show", "clicks", "--where", "event_id = 'late'")
        standby = pair.url.split(",")[1 - pair.active]
        retarget(shop.root, {"storage_options": pair.options | {"endpoint": standby}})
        api.close()
        assert "store-standby" in shop("plan", code=1)
    api.close()
