"""A source whose files are replaced by ones with fewer rows is refused before the commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.time_range.daily_project import DAILY, DailyProject, model

from infold import api
from infold.core.report import RunFailed

pytestmark = pytest.mark.spark

HEADER = "id,who,ts,day,amount\n"


def test_files_cut_to_their_headers_are_refused(tmp_path: Path) -> None:
    """
    Files cut to their headers are refused and leave the tables as they are, until it is allowed;
    also where a declaration changed, and all files are taken in anew. As many rows at other times
    are no loss.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.models(daily=model(DAILY))
    for _ in range(30):
        shop.land("2024-03-01T10:00:00Z", "2024-03-02T10:00:00Z")
    api.run(shop.project())
    files = sorted((shop.root / "landing").iterdir())
    for file in files:
        file.write_text(file.read_text().replace("2024-03", "2024-04"))
    api.run(shop.project())
    assert str(shop.rows("daily")[0][0]) == "2024-04-01"

    before = shop.rows("daily"), shop.rows("raw__clicks")
    for file in files[:16]:
        file.write_text(HEADER)
    text = (shop.root / "infold.yml").read_text()
    for type_ in ("decimal(18,2)", "double"):
        (shop.root / "infold.yml").write_text(text.replace("decimal(18,2)", type_))
        with pytest.raises(RunFailed) as caught:
            api.run(shop.project())
        [error] = caught.value.errors
        assert (error.slug, caught.value.exit_code) == ("source-shrank", 3)
        gone = "16 of 30 files replaced by ones with fewer rows: 32 of 60 rows gone"
        assert error.facts == (("raw.clicks", gone),)
        assert (shop.rows("daily"), shop.rows("raw__clicks")) == before

    api.run(shop.project(), allow_removals=True)
    assert [row[1] for row in shop.rows("daily")] == [14, 14]
