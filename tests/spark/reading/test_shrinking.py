"""A source whose files are replaced by ones with fewer rows is refused before the commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.time_range.daily_project import DAILY, DailyProject, model

from infold import api
from infold.core.report import RunFailed

pytestmark = pytest.mark.spark

HEADER = "id,who,ts,day,amount\n"


@pytest.mark.parametrize("changed", ["query", ""])
def test_files_cut_to_their_headers_are_refused(tmp_path: Path, changed: str) -> None:
    """Files cut to their headers are refused and leave the tables as they are, until it is
    allowed.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.models(daily=model(DAILY))
    for _ in range(30 if changed else 3):
        shop.land("2024-03-01T10:00:00Z", "2024-03-02T10:00:00Z")
    api.run(shop.project())
    files = sorted((shop.root / "landing").iterdir())
    if not changed:
        for file in files:  # as many rows, at other times
            file.write_text(file.read_text().replace("2024-03", "2024-04"))
        api.run(shop.project())
        assert str(shop.rows("daily")[0][0]) == "2024-04-01"
    before = shop.rows("daily"), shop.rows("raw__clicks")
    for file in files if not changed else files[:16]:
        file.write_text(HEADER)
    if changed:  # all files are taken in anew
        text = (shop.root / "infold.yml").read_text()
        (shop.root / "infold.yml").write_text(text.replace("decimal(18,2)", "double"))

    with pytest.raises(RunFailed) as caught:
        api.run(shop.project())

    [error] = caught.value.errors
    assert (error.slug, caught.value.exit_code) == ("source-shrank", 3)
    some = "16 of 30 files replaced by ones with fewer rows: 32 of 60 rows gone"
    every = "3 of 3 files replaced by ones with fewer rows: 6 of 6 rows gone"
    assert error.facts == (("raw.clicks", some if changed else every),)
    assert (shop.rows("daily"), shop.rows("raw__clicks")) == before
    if not changed:
        api.run(shop.project(), allow_removals=True)
        assert not shop.rows("daily")
