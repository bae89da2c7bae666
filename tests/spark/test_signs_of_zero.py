"""To Spark 0.0 and -0.0 are equal, and a query can tell them apart: a correction arrives."""

from __future__ import annotations

import pytest
from tests.spark.events.clicks_project import MODEL, NewShop

pytestmark = pytest.mark.spark

SOURCE = "    event_time_column: at\n    columns: {id: string, at: timestamp, v: double}\n"
DAY = "timeseries: {event_time_column: at, partition_column: day}\nincremental: {}\n"
MODELS = {
    "texts": "---\nmaterialization: table\n---\nSELECT id, cast(v AS string) AS v FROM clicks",
    "days": f"---\nmaterialization: table\n{DAY}---\n"
    "SELECT cast(at AS date) AS day, id, cast(v AS string) AS v FROM clicks",
    "values": "---\nmaterialization: cumulative_aggregate\n---\n"
    "SELECT v, count(*) AS n, max(id) AS id FROM clicks GROUP BY v",
    "visits": "---\nmaterialization: sessions\nsessions: {user: id, gap: 1 hour}\n---\n"
    "SELECT first(v) AS v, count(*) AS n FROM clicks",
}


def test_a_correction_of_the_sign_alone(new_shop: NewShop) -> None:
    """
    The sign of a zero is corrected in a file, and arrives in each table; groups have both zeros. Of
    copies that differ in it alone the same one is kept, whichever came first.
    """
    shop = new_shop(MODEL, SOURCE)
    for name, text in MODELS.items():
        shop.model(name, text)
    header = "id,at,v"

    def tables() -> list[list[tuple[object, ...]]]:
        texts, days = shop.rows("texts"), [row[1:] for row in shop.rows("days")]
        visits = [(row["id"], str(row["v"]), row["n"]) for row in shop.records("visits")]
        return [texts, days, sorted(visits), shop.rows("values")]

    shop.put("1.csv", "1,2024-03-01,0.0", header=header)
    shop.run()
    shop.put("1.csv", "1,2024-03-01,-0.0", header=header)
    shop.run()
    assert tables() == [
        [("1", "-0.0")],
        [("1", "-0.0")],
        [("1", "-0.0", 1)],
        [(0.0, 1, "1")],
    ]

    shop.put("2.csv", "2,2024-03-02,0.0", "3,2024-03-02,0.0", "4,2024-03-02,-0.0", header=header)
    shop.run()
    shop.put("3.csv", "3,2024-03-02,-0.0", "4,2024-03-02,0.0", header=header)
    shop.run()
    assert shop.rows("values") == [(0.0, 4, "4")]
    assert shop.proven()
