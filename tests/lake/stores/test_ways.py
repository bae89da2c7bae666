"""One way to a bucket in a process, whichever projects it works on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infold.core.object_store import StorageOptions, Stores
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.stores import places
from infold.messages.errors import InfoldError

ENDPOINT = "s3.endpoint"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ONE", "SAME"):
        monkeypatch.setenv(name, "key")
    monkeypatch.setenv("OTHER", "other")
    monkeypatch.setattr(places, "_ways", {})


def project(root: Path, warehouse: str, key: str = "ONE", port: int = 1) -> Project:
    """A project with this warehouse, and how its store is reached."""
    secret = f"${{env:{key}}}"
    options = StorageOptions(
        f"http://127.0.0.1:{port}", access_key_id=secret, secret_access_key=secret
    )
    target = Target("dev", warehouse=warehouse, stores=Stores(options))
    return Project("shop", root, None, {}, (), target)


def test_each_project_has_its_own_server(tmp_path: Path) -> None:
    """
    Opening a second one does not change where the first one's tables are looked for. Two may share
    a bucket if they reach it in the same way, by whatever name the key has.
    """
    places.use(project(tmp_path / "a", "s3://a/wh", port=1))
    places.use(project(tmp_path / "b", "s3://b/wh", port=2))
    places.use(project(tmp_path / "c", "s3://a/other", key="SAME"))
    for at in (1, 2):
        found = places.properties(f"s3://{' ab'[at]}/wh/shop/x")
        assert found[ENDPOINT] == f"http://127.0.0.1:{at}"


@pytest.mark.parametrize("how", [{"port": 2}, {"key": "OTHER"}, {"key": "UNSET"}])
def test_another_way_to_the_same_bucket(tmp_path: Path, how: dict[str, Any]) -> None:
    """It is refused, and the first project goes on."""
    places.use(project(tmp_path / "a", "s3://a/wh"))
    with pytest.raises(InfoldError) as refused:
        places.use(project(tmp_path / "b", "s3://a/other", **how))
    assert refused.value.slug == "store-two-ways"
    assert places.properties("s3://a/wh/shop/x")["s3.access-key-id"] == "key"
    places.forget_ways()
    places.use(project(tmp_path / "b", "s3://a/other", **how))


def test_a_target_that_is_opened_again(tmp_path: Path) -> None:
    """It has the key that it declares now."""
    first = project(tmp_path / "a", "s3://a/wh")
    places.use(first)
    places.use(replace(first, target=project(tmp_path, "s3://a/wh", key="OTHER").target))
    assert places.properties("s3://a/wh/shop/x")["s3.access-key-id"] == "other"
