# ruff: noqa: E501 (one case is one row of a table)
"""Every mistake in a project is one error with its place and the nearest valid name.

A case changes one text of a valid project. What is expected is written
as ``slug file:line `text under the caret` (the fact that helps)``.
"""

from __future__ import annotations

import pytest
from tests.declare.shop import CLICKS, DAILY, INFOLD, SHOP, read, spoilt

from infold.messages.errors import InfoldError

YML, C, S, D = "infold.yml", "models/clicks.sql", "models/sessions.sql", "models/daily.sql"


def shown(error: InfoldError) -> str:
    """An error in one line."""
    at = error.at
    caret = at.text[at.column - 1 :][: at.width] if at else ""
    helping = [text for name, text in error.facts if name != "at"]
    return f"{error.slug} {at} `{caret}`" + (f" ({helping[0]})" if helping else "")


KEYS = [
    # infold.yml
    (YML, "start:", "strat:", ["unknown-key infold.yml:2 `strat` (start, targets)"]),
    (YML, "name: shop\n", "", [
        "missing-key infold.yml:1 `start: 2024-01-01`",
    ]),
    (YML, "name: shop", "name: my-shop", [
        "bad-name infold.yml:1 `my-shop` (letters, digits and underscores, a letter first)",
    ]),
    (YML, "name: shop", "name: 7", ["wrong-type infold.yml:1 `7`"]),
    (YML, "name: shop", "name: ''", ["wrong-type infold.yml:1 `''`"]),
    (YML, "2024-01-01", "yesterday", [
        "bad-date infold.yml:2 `yesterday` (2024-01-31, 2024-01-31T09:00)",
    ]),
    (YML, "start: 2024-01-01", "start: 2024-13-01", [
        "bad-date infold.yml:2 `2024-13-01` (2024-01-31, 2024-01-31T09:00)",
    ]),
    (YML, "start: 2024-01-01", "name: other", ["duplicate-key infold.yml:2 `name` (infold.yml:1)"]),
    (YML, "name: shop", "environments: {}\nname: shop", [
        "unknown-key infold.yml:1 `environments` (no key: `infold run --env NAME` makes one)",
    ]),
    (YML, "name: shop", "audits: []\ntests: []\nvariables: {}\nname: shop", [
        "unknown-key infold.yml:1 `audits` (audits, of a model, and files in audits/)",
        "unknown-key infold.yml:2 `tests` (audits, of a model; unit tests are files in tests/)",
        "not-supported-yet infold.yml:3 `variables`",
    ]),
    (YML, "    path: countries.csv", "    connection: a\n    query: SELECT 1", [
        "unknown-key infold.yml:17 `connection` (url, of a source)",
        "unknown-key infold.yml:18 `query` (table, of a source, which may be a view in its database)",
        "missing-key infold.yml:17 `connection: a` (a source is files or a Delta table (path), a table in a catalog (table), or in a database (url))",
    ]),
    (YML, "targets:", "sources_:", ["unknown-key infold.yml:19 `sources_` (sources)"]),
    (YML, "  dev: {warehouse: warehouse}", "  dev: warehouse", ["wrong-type infold.yml:20 `warehouse`"]),
    (YML, "name: shop", "default_target: pord\nname: shop", ["bad-value infold.yml:1 `pord` (dev)"]),
    # hooks
    (YML, "dev: {warehouse: warehouse}", "dev: {on_failure: tell}", ["wrong-type infold.yml:20 `tell`"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {on_failure: {}}", ["missing-key infold.yml:20 `{}` (it tells a URL, or runs a `command`)"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {on_failure: {command: a, webhook: '${env:U}', body: b}}", [
        "needless-key infold.yml:20 `webhook`",
        "needless-key infold.yml:20 `body`",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {on_success: [{command: 'a ${env:U}'}]}", [
        "needless-key infold.yml:20 `'a ${env:U}'`",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {on_success: {webhook: 'ftp://secret'}}", [
        "bad-value infold.yml:20 `` (https://HOST/PATH, http://HOST/PATH, ${env:NAME}, ${file:PATH})",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {on_success: {webhook: 'https://a:secret@b'}}", [
        "password-written-out infold.yml:20 `` (postgresql+psycopg://USER:${env:LEDGER_PASSWORD}@HOST/DATABASE)",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {on_success: {webhook: '${U}', headers: {A: '{stat}'}, body: ['${x}']}}", [
        "bad-secret infold.yml:20 `` (${env:NAME}, ${file:PATH})",
        "bad-secret infold.yml:20 `` (${env:NAME}, ${file:PATH})",
        "bad-value infold.yml:20 `` ({state}, {target}, {steps})",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {lineage: {}}", ["missing-key infold.yml:20 `{}` (events go to a URL, or into a `file`)"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {lineage: {url: '${env:U}', file: a}}", ["needless-key infold.yml:20 `file`"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {lineage: {url: 'a', headers: {B: '${x}'}}}", [
        "bad-value infold.yml:20 `` (https://HOST/PATH, http://HOST/PATH, ${env:NAME}, ${file:PATH})",
        "bad-secret infold.yml:20 `` (${env:NAME}, ${file:PATH})",
    ]),
    # engines
    (YML, "dev: {warehouse: warehouse}", "dev: {engine: spark}", ["bad-value infold.yml:20 `spark` (local)"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {engine: {shared_disk: true}}", [
        "missing-key infold.yml:20 `{shared_disk: true}`",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {engine: {master: http://a}}", [
        "bad-value infold.yml:20 `http://a` (spark://HOST:PORT, yarn, k8s://URL, local[N])",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {engine: {master: yarn}}", ["not-shared infold.yml:20 `yarn`"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {engine: {submitted: true}}", ["not-shared infold.yml:20 `true`"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {engine: {submitted: false}}", [
        "missing-key infold.yml:20 `{submitted: false}`",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {engine: {submitted: true, master: yarn, shared_disk: true}}", [
        "needless-key infold.yml:20 `master`",
    ]),
    (YML, "dev: {warehouse: warehouse}",
     "dev: {engine: {submitted: true, shared_disk: true}, spark: {spark.driver.memory: 4g, spark.executor.memory: 4g}}", [
        "needless-key infold.yml:20 `spark.driver.memory`",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {engine: {remote: 'sc://a:1/;token=${env:T};use_ssl=true'}}", [
        "not-shared infold.yml:20 `'sc://a:1/;token=${env:T};use_ssl=true'`",
    ]),
    (YML, "dev: {warehouse: warehouse}",
     "dev: {engine: {remote: sc://a, master: yarn, submitted: true, shared_disk: true}}", [
        "needless-key infold.yml:20 `submitted`",
        "needless-key infold.yml:20 `master`",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {engine: {remote: http://a, shared_disk: true}}", [
        "bad-value infold.yml:20 `` (sc://HOST:PORT/;token=${env:NAME})",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {engine: {remote: 'sc://a/;session_id=b', shared_disk: true}}", [
        "bad-value infold.yml:20 `` (sc://HOST:PORT/;token=${env:NAME})",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {engine: {remote: 'sc://a/;token=abc', shared_disk: true}}", [
        "secret-written-out infold.yml:20 `` (sc://HOST:PORT/;token=${env:NAME})",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {engine: {remote: 'sc://a/;token=${abc}', shared_disk: true}}", [
        "bad-secret infold.yml:20 `` (${env:NAME}, ${file:PATH})",
    ]),
    (YML, "dev: {warehouse: warehouse}",
     "dev: {engine: {remote: sc://a, shared_disk: true, executor_wait: 1 hour}, spark: {spark.driver.memory: 4g}}", [
        "needless-key infold.yml:20 `executor_wait`",
        "needless-key infold.yml:20 `spark.driver.memory`",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {spark: {master: yarn, spark.master: yarn, spark.remote: a}}", [
        "needless-key infold.yml:20 `master`",
        "needless-key infold.yml:20 `spark.master`",
        "needless-key infold.yml:20 `spark.remote`",
    ]),
    # catalogs
    (YML, "dev: {warehouse: warehouse}", "dev: {catalog: rest}", ["wrong-type infold.yml:20 `rest`"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {catalog: {uri: a}}", ["missing-key infold.yml:20 `{uri: a}`"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {catalog: {type: glue}}", ["not-supported-yet infold.yml:20 `glue` (sqlite, jdbc, rest, hive)"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {catalog: {type: rset}}", ["bad-value infold.yml:20 `rset` (rest)"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {catalog: {type: jdbc}}", ["missing-key infold.yml:20 `{type: jdbc}`"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {catalog: {type: sqlite, uri: a}}", [
        "bad-value infold.yml:20 `` (sqlite:///FILE)",
        "needless-key infold.yml:20 `uri`",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {catalog: {type: jdbc, uri: 'jdbc:mysql://a', namespace: a.b}}", [
        "bad-value infold.yml:20 `` (postgresql://USER@HOST:PORT/DATABASE)",
        "bad-name infold.yml:20 `a.b` (letters, digits and underscores, a letter first)",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {catalog: {type: jdbc, uri: 'postgresql://u:p@h/d'}}", [
        "secret-written-out infold.yml:20 `` (postgresql://USER:${env:NAME}@HOST:PORT/DATABASE)",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {catalog: {type: rest, uri: 'http://a', token: '${vault:a}', credential: 'a:${env:B}'}}", [
        "bad-secret infold.yml:20 `` (${env:NAME}, ${file:PATH})",
        "needless-key infold.yml:20 `credential`",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {catalog: {type: rest, uri: 'http://a', token: s3cret}}", [
        "secret-written-out infold.yml:20 `` (${env:NAME})",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {catalog: {type: rest, uri: 'http://a', credential: 'id:s3cret'}}", [
        "secret-written-out infold.yml:20 `` (${env:NAME})",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {catalog: {type: hive, uri: 'http://a', token: '${env:A}'}}", [
        "unknown-key infold.yml:20 `token` (type, uri, namespace)", "bad-value infold.yml:20 `` (thrift://HOST:PORT)",
    ]),
    (YML, "  dev: {warehouse: warehouse}", "  dev: {catalog: {type: hive, uri: 'thrift://a:9083', namespace: Shop}}\n  prod: {publish: together, catalog: {type: hive, uri: 'thrift://a:9083'}}", [
        "catalog-not-together infold.yml:21 `together`", "catalog-same-tables infold.yml:21 `prod` (shop)",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {publish: together, catalog: {type: rest, uri: 'http://a'}}", [
        "catalog-not-together infold.yml:20 `together`",
    ]),
    (YML, "  dev: {warehouse: warehouse}", "  dev: {catalog: {type: rest, uri: 'http://a'}}\n  prod: {catalog: {type: rest, uri: 'http://a', namespace: shop}}\n  other: {catalog: {type: rest, uri: 'http://a', namespace: more}}", [
        "catalog-same-tables infold.yml:21 `prod` (shop)",
    ]),
    (YML, "  dev: {warehouse: warehouse}", "  dev: {warehouse: 's3://lake/a', catalog: {type: sqlite, uri: 'sqlite:///.infold/c.db'}}\n  prod: {warehouse: 's3://lake/b', catalog: {type: sqlite, uri: 'sqlite:///./.infold/c.db'}}\n  other: {warehouse: 's3://lake/b', catalog: {type: sqlite, uri: 'sqlite:///.infold/d.db'}}", [
        "catalog-same-tables infold.yml:21 `prod` (shop)",
    ]),
    # sources
    (YML, "raw.clicks:", "clicks:", [
        "bad-name infold.yml:5 `path: landing/clicks/*.json` (group.name, such as raw.clicks)",
        "unknown-table models/clicks.sql:6 `raw.clicks` (clicks, raw.countries)",
    ]),
    (YML, "raw.countries:", "raw.Clicks:", [
        "duplicate-name infold.yml:16 `raw.Clicks` (infold.yml:4)",
    ]),
    (YML, "  raw.countries:", "  infold.set_aside:", [
        "duplicate-name infold.yml:16 `infold.set_aside` (infold's own)",
    ]),
    (YML, "format: json", "format: jsn", ["bad-value infold.yml:6 `jsn` (json)"]),
    (YML, "format: json", "format: iceberg", [
        "bad-value infold.yml:6 `iceberg` (csv, json, parquet, avro, orc, delta)",
    ]),
    (YML, "path: landing/clicks/*.json\n    format: json", "table: shop.clicks\n    format: delta", [
        "missing-key infold.yml:5 `table: shop.clicks` (a Delta table is found by its name in a Hive metastore)",
    ]),
    (YML, "path: landing/clicks/*.json\n    format: json", "table: clicks\n    format: delta\n    catalog: {type: rest, uri: 'https://c.example.com'}", [
        "bad-name infold.yml:5 `clicks` (namespace.name, as the metastore has it)",
        "delta-source-catalog infold.yml:7 `{type: rest, uri: 'https://c.example.com'}`",
    ]),
    (YML, "path: landing/clicks/*.json\n    format: json", "table: a.b.clicks\n    format: delta\n    catalog: c.db", [
        "bad-name infold.yml:5 `a.b.clicks` (namespace.name, as the metastore has it)",
        "delta-source-catalog infold.yml:7 `c.db`",
    ]),
    (YML, "path: landing/clicks/*.json\n    format: json", "table: shop.clicks\n    format: delta\n    catalog: {type: hive}", [
        "missing-key infold.yml:7 `{type: hive}`",
    ]),
    (YML, "path: landing/clicks/*.json\n    format: json", "table: shop.clicks\n    format: csv", [
        "bad-value infold.yml:6 `csv` (iceberg, delta)",
    ]),
    (YML, "format: json", "format: delta\n    settle: 1 minute", ["needless-key infold.yml:7 `settle`"]),
    (YML, "format: json", "format: delta\n    on_unreadable: set_aside", [
        "needless-key infold.yml:7 `on_unreadable`",
    ]),
    (YML, "countries.csv", "countries.txt", [
        "missing-key infold.yml:17 `path: countries.txt` (the ending of the path does not say it)",
    ]),
    (YML, "    path: countries.csv\n", "", [
        "missing-key infold.yml:17 `columns: {code: string, country: string}` (a source is files or a Delta table (path), a table in a catalog (table), or in a database (url))",
    ]),
    (YML, "path: countries.csv", "path: countries.csv\n    table: shop.countries", [
        "needless-key infold.yml:18 `table`",
    ]),
    (YML, "path: countries.csv", "path: countries.csv\n    catalog: other.db", [
        "needless-key infold.yml:18 `catalog`",
    ]),
    (YML, "path: countries.csv", "table: shop.countries\n    catalog: {type: rest}", [
        "missing-key infold.yml:18 `{type: rest}`",
    ]),
    (YML, "path: countries.csv", "table: shop.countries\n    catalog: {type: sqlite}", [
        "missing-key infold.yml:18 `{type: sqlite}`",
    ]),
    (YML, "path: countries.csv", "table: shop.countries\n    catalog: {type: rest, uri: 'http://c', namespace: a}", [
        "unknown-key infold.yml:18 `namespace` (type, uri, warehouse, token, credential, scope, oauth2_server_uri)",
    ]),
    (YML, "path: countries.csv", "table: shop.countries\n    catalog: {type: rest, uri: 'http://c', token: abc}", [
        "secret-written-out infold.yml:18 `` (${env:NAME})",
    ]),
    (YML, "event_time_column: event_ts", "event_time_column: event_tz", [
        "unknown-column infold.yml:7 `event_tz` (event_ts, event_id, seen_at)",
    ]),
    (YML, "event_time_column: event_ts", "event_time_column: url", ["not-a-time infold.yml:7 `url`"]),
    (YML, "    event_time_column: event_ts\n", "", [
        "needless-key infold.yml:7 `received_column`",
    ]),
    (YML, "received_column: seen_at", "future_tolerance: 2 hours", [
        "needless-key infold.yml:8 `future_tolerance`",
    ]),
    (YML, "received_column: seen_at", "full_listing: daily", [
        "needless-key infold.yml:8 `full_listing`",
    ]),
    (YML, "path: landing/clicks/*.json", "path: 'in/dt={date}/*.json'\n    full_listing: dayly", [
        "bad-value infold.yml:6 `dayly` (daily)",
    ]),
    (YML, "path: landing/clicks/*.json", "path: 'in/dt={date}/*.json'\n    listing_window: 2 days", [
        "needless-key infold.yml:6 `listing_window`",
    ]),
    *(
        (YML, "path: landing/clicks/*.json", f"path: '{path}'", [f"bad-value infold.yml:5 `'{path}'`"])
        for path in (
            "in/clicks-{date}.json", "in/{date}/{date}/*.json", "in/{date}-{date}/*.json",
            "in/dt={date}*/*.json", "in/**/dt={date}/*.json", "in/dt={date}/{date}.json",
            "in/dt={date}/", "in/dt={date}/.",
        )
    ),
    (YML, "received_column: seen_at", "settle: soon", [
        "bad-duration infold.yml:8 `soon` (30 minutes, 1 hour 30 minutes, 2 days)",
    ]),
    (YML, "path: countries.csv", "table: sales.countries\n    on_drift: set_aside", [
        "needless-key infold.yml:18 `on_drift`",
    ]),
    (YML, "path: countries.csv", "path: countries\n    format: delta\n    on_drift: evolve", [
        "needless-key infold.yml:19 `on_drift`",
    ]),
    (YML, "received_column: seen_at", "on_drift: ignore", [
        "bad-value infold.yml:8 `ignore` (error, set_aside, evolve)",
    ]),
    (YML, "received_column: seen_at", "timestamp_format: epoch_second", [
        "bad-value infold.yml:8 `epoch_second` (epoch_seconds, epoch_micros, epoch_millis)",
    ]),
    (YML, "seen_at: timestamp", "seen_at: {type: timestamp, optional: true}", [
        "optional-time infold.yml:8 `seen_at`",
    ]),
    (YML, "received_column: seen_at", "on_new_columns: drop", [
        "bad-value infold.yml:8 `drop` (error, set_aside, ignore)",
    ]),
    (YML, "received_column: seen_at", "on_unreadable: evolve", [
        "bad-value infold.yml:8 `evolve` (error, set_aside)",
    ]),
    (YML, "received_column: seen_at", "on_unreadable: ignore", [
        "bad-value infold.yml:8 `ignore` (error, set_aside)",
    ]),
    (YML, "amount: decimal(18,2)", "amount: {type: int, default: 1}", [
        "needless-key infold.yml:15 `default`",
    ]),
    (YML, "amount: decimal(18,2)", "amount: {type: int, optional: true, default: 1.5}", [
        "wrong-type infold.yml:15 `1.5`",
    ]),
    (YML, "amount: decimal(18,2)", "amount: {optional: true, nullable: yes}", [
        "missing-key infold.yml:15 `{optional: true, nullable: yes}`",
        "unknown-key infold.yml:15 `nullable` (type, optional, default)",
    ]),
    (YML, "received_column: seen_at", "timestamp_format: HHmmssSSSSSSSSS", [
        ("bad-value infold.yml:8 `HHmmssSSSSSSSSS` "
        "(iso, epoch_seconds, epoch_millis, epoch_micros, yyyy-MM-dd HH:mm:ss)"),
    ]),
    (YML, "received_column: seen_at", "delimiter: ;", ["needless-key infold.yml:8 `delimiter`"]),
    (YML, "path: countries.csv", "path: countries.csv\n    delimiter: ';;'", [
        "wrong-type infold.yml:18 `';;'`",
    ]),
    (YML, "received_column: seen_at", "header: false", ["needless-key infold.yml:8 `header`"]),
    (YML, "received_column: seen_at", "quote: none", ["needless-key infold.yml:8 `quote`"]),
    (YML, "path: countries.csv", "path: countries.csv\n    quote: single", [
        "bad-value infold.yml:18 `single` (double, none)",
    ]),
    (YML, "path: countries.csv", "path: countries.csv\n    multiline: true", [
        "needless-key infold.yml:18 `multiline`",
    ]),
    (YML, "amount: decimal(18,2)", "amount: decimal(2,18)", [
        "bad-type infold.yml:15 `decimal(2,18)` (decimal)",
    ]),
    (YML, "url: string", "url: text", ["bad-type infold.yml:14 `text` (string)"]),
    (YML, "url: string", "URL_: [string]", [
        "wrong-type infold.yml:14 `[string]`",
        "unknown-column models/clicks.sql:6 `url` (URL_)",
    ]),
    (YML, "      url: string", "      url: string\n      Url: string", [
        "duplicate-name infold.yml:15 `Url` (url)",
    ]),
    (YML, "columns: {code: string, country: string}", "columns: {}", [
        "missing-key infold.yml:17 `path: countries.csv` (there is not one in it)",
    ]),
    # sources in databases
    (YML, "    path: countries.csv\n    columns: {code: string, country: string}\ntargets:\n  dev: {warehouse: warehouse}",
     "    table: a\n    url: sqlite:///a.db\n    columns: {code: string, country: string}\ntargets:\n  dev: {warehouse: 's3://lake/shop', catalog: {type: sqlite, uri: 'sqlite:///c.db'}}", [
        "extracts-in-store infold.yml:21 `dev`",
    ]),
    (YML, "path: countries.csv", "url: sqlite:///a.db", ["missing-key infold.yml:17 `url: sqlite:///a.db` (it names a table, or a view, of the database)"]),
    (YML, "path: countries.csv", "table: countries\n    format: jdbc", ["missing-key infold.yml:17 `table: countries` (it says where the database is)"]),
    (YML, "path: countries.csv", "table: countries\n    url: jdbc:postgresql://h/d", ["bad-value infold.yml:18 `` (postgresql://USER@HOST:PORT/DATABASE, sqlite:///FILE)"]),
    (YML, "path: countries.csv", "table: countries\n    url: mysql://u:s3cret@h/d", ["password-written-out infold.yml:18 `` (postgresql+psycopg://USER:${env:LEDGER_PASSWORD}@HOST/DATABASE)"]),
    (YML, "path: countries.csv", "table: countries\n    url: mysql://u@h/d", ["bad-value infold.yml:18 `` (sqlite:///FILE)"]),
    (YML, "path: countries.csv", "table: countries\n    url: 'postgresql://u:${abc}@h/d'", ["bad-secret infold.yml:18 `` (${env:NAME}, ${file:PATH})"]),
    (YML, "path: countries.csv", "table: countries\n    url: sqlite:///a.db\n    format: csv\n    path: a.csv\n    on_drift: error\n    settle: 1 hour", [
        "bad-value infold.yml:19 `csv` (jdbc)",
        "needless-key infold.yml:20 `path`",
        "needless-key infold.yml:21 `on_drift`",
    ]),
    (YML, "path: countries.csv", "table: countries\n    url: sqlite:///a.db\n    corrections: none", ["needless-key infold.yml:19 `corrections`"]),
    (YML, "path: countries.csv", "path: countries.csv\n    key: code", ["needless-key infold.yml:18 `key`"]),
    (YML, "path: countries.csv", "table: countries\n    url: sqlite:///a.db\n    key: code", [
        "missing-key infold.yml:17 `table: countries` (whether rows that were read may change later: none, or reread 3 days)",
        "bad-source-key infold.yml:19 `code`",
    ]),
    (YML, "path: countries.csv", "table: countries\n    url: sqlite:///a.db\n    key: cod\n    corrections: reread", [
        "unknown-column infold.yml:19 `cod` (code)",
        "bad-value infold.yml:20 `reread` (reread 3 days)",
    ]),
    (YML, "    path: countries.csv\n    columns: {code: string,", "    table: countries\n    url: sqlite:///a.db\n    key: n\n    corrections: reread 3 days\n    columns: {n: bigint, code: string,", [
        "bad-source-key infold.yml:19 `n`",
    ]),
    (YML, "    path: countries.csv\n    columns: {code: string,", "    table: countries\n    url: sqlite:///a.db\n    key: n\n    corrections: reread 0 days\n    columns: {n: {type: date, optional: true}, code: string,", [
        "bad-source-key infold.yml:19 `n`",
        "bad-value infold.yml:20 `reread 0 days` (reread 3 days)",
    ]),
    (YML, "    columns: {code: string, country: string}\n", "", [
        "missing-key infold.yml:17 `path: countries.csv` (files are checked against their declared columns)",
    ]),
    # targets
    (YML, "{warehouse: warehouse}", "{warehouse: 'gs://lake/shop'}", [
        "store-without-catalog infold.yml:20 `'gs://lake/shop'` (gs://lake/shop)",
    ]),
    (YML, "{warehouse: warehouse}", "{warehouse: 'abfss://lake@shop.dfs.core.windows.net/a'}", [
        "store-without-catalog infold.yml:20 `'abfss://lake@shop.dfs.core.windows.net/a'` (abfss://lake@shop.dfs.core.windows.net/a)",
    ]),
    (YML, "{warehouse: warehouse}", "{warehouse: 'webhdfs://name:9870/shop', catalog: {type: sqlite, uri: 'sqlite:///a.db'}}", [
        "not-supported-yet infold.yml:20 `'webhdfs://name:9870/shop'` (a folder, s3://BUCKET/FOLDER, s3a://BUCKET/FOLDER, gs://BUCKET/FOLDER, abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER, hdfs://NAMENODE:8020/FOLDER)",
    ]),
    (YML, "{warehouse: warehouse}", "{warehouse: 'hdfs://name:8020/shop'}", [
        "store-without-catalog infold.yml:20 `'hdfs://name:8020/shop'` (hdfs://name:8020/shop)",
    ]),
    (YML, "{warehouse: warehouse}", "{storage: delta, warehouse: 'hdfs://name:8020/shop'}", [
        "not-with-delta infold.yml:20 `'hdfs://name:8020/shop'`",
    ]),
    (YML, "{warehouse: warehouse}", "{warehouse: 's3://lake/shop', catalog: {type: sqlite, uri: 'sqlite:///a.db'}, storage_options: {user: etl, buckets: {'name:8020': {region: a, user: etl}}}}", [
        "needless-key infold.yml:20 `region`",
        "needless-key infold.yml:20 `user`",
    ]),
    (YML, "{warehouse: warehouse}", "{warehouse: 's3://lake/shop', catalog: {type: sqlite, uri: 'sqlite:///a.db'}, storage_options: {region: a, endpoint: 'http://a', account_key: '${env:A}', service_account_key: '${env:A}'}}", [
        "needless-key infold.yml:20 `account_key`",
        "needless-key infold.yml:20 `service_account_key`",
    ]),
    (YML, "{warehouse: warehouse}", "{warehouse: 'gs://lake/shop', catalog: {type: sqlite, uri: 'sqlite:///a.db'}, storage_options: {region: a, service_account_key: '${env:A}', buckets: {lake: {profile: p}}}}", [
        "needless-key infold.yml:20 `profile`",
    ]),
    (YML, "{warehouse: warehouse}", "{storage_options: {buckets: {'a@b.dfs.core.windows.net': {region: a}, c: {region: a, sas_token: '${env:A}'}, d: 7}}}", [
        "needless-key infold.yml:20 `region`",
        "needless-key infold.yml:20 `sas_token`",
        "wrong-type infold.yml:20 `7`",
    ]),
    (YML, "{warehouse: warehouse}", "{warehouse: 's3://lake/shop'}", [
        "store-without-catalog infold.yml:20 `'s3://lake/shop'` (s3://lake/shop)",
    ]),
    (YML, "{warehouse: warehouse}", "{warehouse: 's3://*/shop', catalog: {type: sqlite, uri: 'sqlite:///a.db'}}", [
        "no-bucket infold.yml:20 `'s3://*/shop'` (s3://BUCKET/FOLDER)",
    ]),
    (YML, "{warehouse: warehouse}", "{warehouse: 's3://lake/shop', catalog: {type: sqlite, uri: 's3://lake/catalog.db'}}", [
        "bad-value infold.yml:20 `` (sqlite:///FILE)",
    ]),
    (YML, "{warehouse: warehouse}", "{catalog: {type: sqlite, uri: 'sqlite:///a.db'}}", [
        "needless-key infold.yml:20 `uri`",
    ]),
    (YML, "{warehouse: warehouse}", "{storage_options: {access_key_id: AKIA1, regoin: a, endpoint: 'ftp://a'}}", [
        "bad-value infold.yml:20 `` (https://HOST:PORT)",
        "half-a-key infold.yml:20 `access_key_id`",
        "password-written-out infold.yml:20 `` (${env:NAME})",
        "unknown-key infold.yml:20 `regoin` (region, endpoint)",
    ]),
    (YML, "{warehouse: warehouse}", "{storage_options: {buckets: {lake: {profile: a, secret_access_key: '${vault:a}'}}}}", [
        "bad-secret infold.yml:20 `` (${env:NAME}, ${file:PATH})",
        "half-a-key infold.yml:20 `secret_access_key`",
    ]),
    (YML, "path: landing/clicks/*.json", "path: 's3:///landing/*.json'", [
        "no-bucket infold.yml:5 `'s3:///landing/*.json'` (s3://BUCKET/FOLDER)",
    ]),
    (YML, "path: landing/clicks/*.json", "path: 'hdfs:///landing/*.json'", [
        "no-bucket infold.yml:5 `'hdfs:///landing/*.json'` (hdfs://NAMENODE:8020/FOLDER)",
    ]),
    (YML, "path: landing/clicks/*.json", "path: 'hdfs://etl@name:8020/landing/*.json'", [
        "no-bucket infold.yml:5 `'hdfs://etl@name:8020/landing/*.json'` (hdfs://NAMENODE:8020/FOLDER)",
    ]),
    (YML, "path: landing/clicks/*.json", "path: 'gs://*/landing/*.json'", [
        "no-bucket infold.yml:5 `'gs://*/landing/*.json'` (gs://BUCKET/FOLDER)",
    ]),
    (YML, "path: landing/clicks/*.json", "path: 'abfss://a@b/landing/*.json'", [
        "no-bucket infold.yml:5 `'abfss://a@b/landing/*.json'` (abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER)",
    ]),
    (YML, "{warehouse: warehouse}", "{storage_options: {client_id: a, account_key: '${env:A}', sas_token: '${env:A}'}}", [
        "half-a-key infold.yml:20 `client_id`",
        "needless-key infold.yml:20 `sas_token`",
    ]),
    (YML, "{warehouse: warehouse}", "{storage_options: {service_account_key: '{}'}}", [
        "password-written-out infold.yml:20 `` (${env:NAME})",
    ]),
    (YML, "{warehouse: warehouse}", "{ledger: 'mysql://u@db'}", [
        "bad-value infold.yml:20 `` (sqlite:///FILE)",
    ]),
    (YML, "{warehouse: warehouse}", "{ledger: 'sqlite:///${env:FOLDER}/ledger.db'}", [
        "bad-value infold.yml:20 `` (sqlite:///FILE)",
    ]),
    (YML, "{warehouse: warehouse}", "{ledger: 'postgresql://u:secret@db/x'}", [
        "password-written-out infold.yml:20 `` (postgresql+psycopg://USER:${env:LEDGER_PASSWORD}@HOST/DATABASE)",
    ]),
    (YML, "{warehouse: warehouse}", "{ledger: 'postgresql://u:${SECRET}@db/x'}", [
        "bad-secret infold.yml:20 `` (${env:NAME}, ${file:PATH})",
    ]),
    (YML, "{warehouse: warehouse}", "{ledger: 'postgresql://u@db/x', ledger_schema: a-b}", [
        "bad-name infold.yml:20 `a-b` (letters, digits and underscores, a letter first, at most 63, and not pg_ at the beginning, which is PostgreSQL's own)",
    ]),
    (YML, "{warehouse: warehouse}", "{ledger: 'postgresql://u@db/x', ledger_schema: pg_x}", [
        "bad-name infold.yml:20 `pg_x` (letters, digits and underscores, a letter first, at most 63, and not pg_ at the beginning, which is PostgreSQL's own)",
    ]),
    (YML, "{warehouse: warehouse}", "{ledger_schema: books}", [
        "needless-key infold.yml:20 `books`",
    ]),
    (YML, "{warehouse: warehouse}", "{ledger: 'postgresql://u:secret@db/x', ledger: a}", [
        "duplicate-key infold.yml:20 `ledger` (infold.yml:20)",
        "password-written-out infold.yml:20 `` (postgresql+psycopg://USER:${env:LEDGER_PASSWORD}@HOST/DATABASE)",
    ]),
    (YML, "{warehouse: warehouse}", "{storage: hudi}", [
        "bad-value infold.yml:20 `hudi` (iceberg, delta)",
    ]),
    (YML, "{warehouse: warehouse}", r'{warehouse: "a\0b"}', [
        r'wrong-type infold.yml:20 `"a\0b"`',
    ]),
    (YML, "{warehouse: warehouse}", r'{catalog: {type: sqlite, uri: "sqlite:///a\0b"}}', [
        r'wrong-type infold.yml:20 `"sqlite:///a\0b"`',
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {hide_technical: columns}", [
        "bad-value infold.yml:20 `columns` (views)",
    ]),
    (YML, "{warehouse: warehouse}", "{storage: delta, hide_technical: views, publish: together, engine: {submitted: true, shared_disk: true}}", [
        "not-with-delta infold.yml:20 `together`",
        "not-with-delta infold.yml:20 `views`",
        "not-with-delta infold.yml:20 `{submitted: true, shared_disk: true}`",
    ]),
    (YML, "{warehouse: warehouse}", "{storage: delta, warehouse: 's3://b/x', catalog: {type: sqlite, uri: 'sqlite:///c.db'}}", [
        "not-with-delta infold.yml:20 `{type: sqlite, uri: 'sqlite:///c.db'}`",
    ]),
    (YML, "{warehouse: warehouse}", "{storage: delta, warehouse: 's3://b/w/'}\n  new: {warehouse: 's3a://b/w', catalog: {type: sqlite, uri: 'sqlite:///c.db'}}", [
        "not-with-delta infold.yml:21 `new`",
    ]),
    (YML, "{warehouse: warehouse}", "{storage: delta, catalog: {type: jdbc, uri: 'postgresql://a@b:5432/c'}, engine: {remote: 'sc://a:15002', shared_disk: true}}", [
        "not-with-delta infold.yml:20 `{type: jdbc, uri: 'postgresql://a@b:5432/c'}`",
        "not-with-delta infold.yml:20 `{remote: 'sc://a:15002', shared_disk: true}`",
    ]),
    (YML, "{warehouse: warehouse}", "{storage: delta, warehouse: 's3://b/x', catalog: {type: rest, uri: 'https://c.example.com'}}", [
        "not-with-delta infold.yml:20 `{type: rest, uri: 'https://c.example.com'}`",
    ]),
    (YML, "{warehouse: warehouse}", "{storage: delta, publish: together, hide_technical: views, catalog: {type: hive, uri: 'thrift://a:9083'}}", [
        "catalog-not-together infold.yml:20 `together`",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {storage: delta, catalog: {type: hive, uri: 'thrift://a:9083', namespace: Shop}}\n  prod: {warehouse: tables, catalog: {type: hive, uri: 'thrift://a:9083'}}", [
        "catalog-same-tables infold.yml:21 `prod` (shop)",
    ]),
    (YML, "{warehouse: warehouse}", "{warehouse: w}\n  new: {storage: delta, warehouse: ./w}", [
        "not-with-delta infold.yml:21 `new`",
    ]),
    (YML, "{warehouse: warehouse}", "{spark: {remote: 'sc://x'}, protected: maybe}", [
        "wrong-type infold.yml:20 `maybe`",
        "needless-key infold.yml:20 `remote`",
    ]),
    # front matter
    (C, "materialization: events", "materialisation: events", [
        "unknown-key models/clicks.sql:2 `materialisation` (materialization, description)",
    ]),
    (C, "events", "event", ["bad-value models/clicks.sql:2 `event` (events)"]),
    (C, "events", "incremental", [
        "bad-value models/clicks.sql:2 `incremental`",
    ]),
    (C, "materialization: events\nunique_key: [event_id]", "materialization: cumulative_aggregate\nincremental: {}", [
        "needless-key models/clicks.sql:3 `incremental`",
        "needless-key models/clicks.sql:4 `timeseries`",
    ]),
    (C, "unique_key: [event_id]\n", "", [
        "missing-key models/clicks.sql:2 `materialization: events` (it tells copies of an event apart from other events)",
    ]),
    (C, "unique_key: [event_id]", "unique_key: []", ["wrong-type models/clicks.sql:3 `[]`"]),
    (C, "unique_key: [event_id]", "unique_key: [event_id, 5]", ["wrong-type models/clicks.sql:3 `5`"]),
    (C, "unique_key: [event_id]", "unique_key: [evnt_id]", [
        "unknown-column models/clicks.sql:3 `evnt_id` (event_id, event_ts, user_id)",
    ]),
    (C, "unique_key: [event_id]", "unique_key: event_id\nprefer: [amount up]", [
        "bad-value models/clicks.sql:4 `[amount up]` (column, column desc)",
    ]),
    (C, "unique_key: [event_id]", "unique_key: event_id\nprefer: [size desc]", [
        "unknown-column models/clicks.sql:4 `size desc` (event_id, user_id, event_ts, url, amount)",
    ]),
    (C, "unique_key: [event_id]", "unique_key: event_id\ndeduplicate: everwhere", [
        "bad-value models/clicks.sql:4 `everwhere` (everywhere)",
    ]),
    (C, "unique_key: [event_id]", "unique_key: [event_id, EVENT_TS]\ndeduplicate: everywhere", [
        "needless-key models/clicks.sql:4 `everywhere`",
    ]),
    (D, "incremental: {}", "incremental: {}\ndeduplicate: everywhere", [
        "needless-key models/daily.sql:5 `deduplicate`",
    ]),
    (D, "incremental: {}", "incremental: {}\nstart: 2024-01-01", ["needless-key models/daily.sql:5 `start`"]),
    (D, "incremental: {}", "incremental: {}\nbackfill_limit: 3 days", [
        "needless-key models/daily.sql:5 `backfill_limit`",
    ]),
    (C, "unique_key: [event_id]", "unique_key: event_id\nbackfill_limit: 3 days", [
        "needless-key models/clicks.sql:4 `backfill_limit`",
    ]),
    (C, "unique_key: [event_id]", "unique_key: event_id\nincremental: {start: 2024-01-01}", [
        "needless-key models/clicks.sql:4 `incremental`",
    ]),
    (C, "unique_key: [event_id]", "unique_key: event_id\nstart: soon", ["bad-date models/clicks.sql:4 `soon` (2024-01-31, 2024-01-31T09:00)"]),
    (C, "granularity: day", "granularity: dya", ["bad-value models/clicks.sql:4 `dya` (day, year)"]),
    (C, "unique_key: [event_id]", "unique_key: [event_id]\npartitioned_by: [day]\nowner: ann", [
        "unknown-key models/clicks.sql:4 `partitioned_by` (timeseries.partition_column (as SQLMesh has it))",
        "not-supported-yet models/clicks.sql:5 `owner`",
    ]),
    (C, "granularity: day", "granularity: minute", [
        "not-supported-yet models/clicks.sql:4 `minute` (hour, day, week, month, quarter, year)",
    ]),
    (C, "granularity: day", "week_start: sunday", ["needless-key models/clicks.sql:4 `week_start`"]),
    (C, "granularity: day", "partition_column: url", ["bad-value models/clicks.sql:4 `url` (event_ts)"]),
    (C, "event_time_column: event_ts", "event_time_column: url", [
        "not-a-time models/clicks.sql:4 `url`",
    ]),
    (C, "event_time_column: event_ts", "event_time_column: amount", [
        "not-a-time models/clicks.sql:4 `amount`",
    ]),
    (C, "event_time_column: event_ts, ", "", [
        "missing-key models/clicks.sql:4 `{granularity: day}`",
    ]),
    (C, "timeseries: {event_time_column: event_ts, granularity: day}", "incremental: {}", [
        "needless-key models/clicks.sql:4 `incremental`",
        "missing-key models/clicks.sql:2 `materialization: events` (events are kept by their time: event_time_column)",
    ]),
    (S, "gap: 30 minutes", "gap: 30 minutes, time_zone: Europe/Berlin", [
        "unknown-key models/sessions.sql:3 `time_zone` (cuts.midnight, of sessions; cron_tz, of a cron; cells are UTC)",
    ]),
    (S, "gap: 30 minutes", "gap: 30 minuets", [
        "bad-duration models/sessions.sql:3 `30 minuets` (30 minutes, 1 hour 30 minutes, 2 days)",
    ]),
    (S, "gap: 30 minutes", "gap: 30", [
        "bad-duration models/sessions.sql:3 `30` (30 minutes, 1 hour 30 minutes, 2 days)",
    ]),
    (S, "gap: 30 minutes", "gap: 0 minutes", [
        "bad-duration models/sessions.sql:3 `0 minutes` (30 minutes, 1 hour 30 minutes, 2 days)",
    ]),
    (S, ", gap: 30 minutes", "", [
        "missing-key models/sessions.sql:3 `{user: user_id}` (or identifier: what a session is of)",
    ]),
    (S, "user: user_id", "identifier: url, session_number: true", [
        "missing-key models/sessions.sql:3 `{identifier: url, session_number: true, gap: 30 minutes}` (the user that sessions are numbered for)",
    ]),
    (S, "user: user_id, gap: 30 minutes", "identifier: []", ["wrong-type models/sessions.sql:3 `[]`"]),
    (S, "gap: 30", "choose_user: last, gap: 30", ["needless-key models/sessions.sql:3 `choose_user`"]),
    (S, "user: user_id", "identifier: url, choose_user: last", [
        "needless-key models/sessions.sql:3 `choose_user`",
    ]),
    (S, "user: user_id", "identifier: url, without_identifier: {gap: 1 hour}", [
        ("missing-key models/sessions.sql:3 `{identifier: url, without_identifier: {gap: 1 hour}, gap: 30 minutes}`"
        " (the user of events without identifier)"),
    ]),
    (S, "user: user_id", "identifier: url, without_identifier: drop", [
        "wrong-type models/sessions.sql:3 `drop`",
    ]),
    (S, "gap: 30", "max_length: 0 hours, gap: 30", [
        "bad-duration models/sessions.sql:3 `0 hours` (30 minutes, 1 hour 30 minutes, 2 days)",
    ]),
    (S, "gap: 30", "keep: head, gap: 30", ["needless-key models/sessions.sql:3 `keep`"]),
    (S, "gap: 30", "max_length: 1 day, quarantine_after: 1 day, gap: 30", [
        "needless-key models/sessions.sql:3 `quarantine_after`",
    ]),
    (S, "gap: 30", "quarantine_after: 1 day, keep: tail, gap: 30", [
        "bad-value models/sessions.sql:3 `tail` (nothing, head)",
    ]),
    (S, "gap: 30", "cuts: {midnight: Europe/Berln}, gap: 30", [
        "bad-zone models/sessions.sql:3 `Europe/Berln`",
    ]),
    (S, "gap: 30", "cuts: {noon: UTC}, gap: 30", [
        "unknown-key models/sessions.sql:3 `noon` (midnight, campaign, start_events, rule)",
    ]),
    (S, "gap: 30", "cuts: {campaign: ulr}, gap: 30", [
        "unknown-column models/sessions.sql:3 `ulr` (url)",
    ]),
    (S, "gap: 30", "cuts: {campaign: {nulls: ignore}}, gap: 30", [
        "missing-key models/sessions.sql:3 `{nulls: ignore}` (what tells one campaign from another)",
    ]),
    (S, "gap: 30", "cuts: {start_events: count(*) > 1}, gap: 30", [
        "not-of-one-event models/sessions.sql:3 `count(*) > 1`",
    ]),
    (S, "gap: 30", "cuts: {start_events: rand() < 0.1}, gap: 30", [
        "not-of-one-event models/sessions.sql:3 `rand() < 0.1`",
    ]),
    (S, "gap: 30", "cuts: {start_events: amount > now()}, gap: 30", [
        "not-of-one-event models/sessions.sql:3 `amount > now()`",
    ]),
    (S, "gap: 30", "cuts: {start_events: amount > (SELECT 1)}, gap: 30", [
        "not-of-one-event models/sessions.sql:3 `amount > (SELECT 1)`",
    ]),
    (S, "user: user_id", "user: lower(usr_id)", ["unknown-column models/sessions.sql:3 `lower(usr_id)` (user_id)"]),
    (S, "sessions: {user: user_id, gap: 30 minutes}\n", "", [
        "missing-key models/sessions.sql:2 `materialization: sessions` (who has them, and the gap that ends them)",
    ]),
    (S, "user: user_id", "user: usr_id", ["unknown-column models/sessions.sql:3 `usr_id` (user_id)"]),
    (S, "sessions: {", "timeseries: {event_time_column: event_ts}\nsessions: {", [
        "bad-value models/sessions.sql:3 `event_ts` (session_start)",
    ]),
    (D, "timeseries: {event_time_column: session_start, partition_column: day, granularity: day}\n", "", [
        "missing-key models/daily.sql:2 `materialization: table` (an incremental table is built cell by cell of time)",
    ]),
    (D, "incremental: {}", "incremental: {on_additive_change: allow}", [
        "unknown-key models/daily.sql:4 `on_additive_change` (no key: a table gets each column that its query gains (as SQLMesh has it))",
    ]),
    (D, "incremental: {}", "incremental: {forward_only: 3}", [
        "wrong-type models/daily.sql:4 `3`",
    ]),
    (D, "incremental: {}", "incremental: {late: never}", [
        "bad-value models/daily.sql:4 `never` (new, earlier)",
    ]),
    (C, "unique_key", "forward_only: 3\nunique_key", ["wrong-type models/clicks.sql:3 `3`"]),
    (S, "sessions: {", "forward_only: 3\nsessions: {", ["wrong-type models/sessions.sql:3 `3`"]),
    (D, "incremental: {}", "incremental: {}\nforward_only: true", [
        "needless-key models/daily.sql:5 `forward_only`",
    ]),
    (D, "incremental: {}", "incremental: {unique_key: [dya]}", ["unknown-column models/daily.sql:4 `dya` (day)"]),
    (D, "incremental: {}", "incremental: {lookback: 3}", ["needless-lookback models/daily.sql:4 `lookback`"]),
    (D, "incremental: {}", "incremental: {allow_downgrade: true}", [
        "unknown-key models/daily.sql:4 `allow_downgrade`",
    ]),
    (D, "incremental: {}", "incremental: {cron: '* * *'}", [
        "bad-cron models/daily.sql:4 `'* * *'` (five fields: minute, hour, day of the month, month, day of the week)",
    ]),
    (D, "incremental: {}", "incremental: {cron: '@daily', cron_tz: Mars/Base}", [
        "bad-zone models/daily.sql:4 `Mars/Base`",
    ]),
    (D, "incremental: {}", "incremental: {allow_partials: true}", [
        "needless-key models/daily.sql:4 `allow_partials`",
    ]),
    (D, "incremental: {}", "incremental: {batch_size: 0}", ["wrong-type models/daily.sql:4 `0`"]),
    (D, "incremental: {}", "incremental: {batch_concurrency: none}", [
        "wrong-type models/daily.sql:4 `none`",
    ]),
    (D, "incremental: {}", "incremental: {backfill_limit: 0 days}", [
        "bad-duration models/daily.sql:4 `0 days` (30 minutes, 1 hour 30 minutes, 2 days)",
    ]),
    (YML, "start: 2024-01-01", "dev_target: prod", ["bad-value infold.yml:2 `prod` (dev)"]),
    (YML, "dev: {warehouse: warehouse}", "dev: {protected: true}", [
        "protected-dev infold.yml:20 `true`",
    ]),
    (YML, "start: 2024-01-01", "backfill_limit: soon", [
        "bad-duration infold.yml:2 `soon` (30 minutes, 1 hour 30 minutes, 2 days)",
    ]),
    (D, "incremental: {}", "incremental: {safety_overrides: {allow_everything: true}}", [
        "unknown-key models/daily.sql:4 `allow_everything` (allow_having, allow_distinct, allow_nondeterministic)",
    ]),
    (D, "incremental: {}", "incremental: {bounds: {clicks: {before: 2 hours}}}", [
        "unknown-table models/daily.sql:4 `{before: 2 hours}` (sessions)",
    ]),
    (D, "incremental: {}", "incremental: {strategy: merge}", [
        "bad-value models/daily.sql:4 `merge` (delete_insert, insert_overwrite, append)",
    ]),
    (D, "incremental: {}", "incremental: yes", ["wrong-type models/daily.sql:4 `yes`"]),
    (D, "incremental: {}", "batch_size: 3", ["unknown-key models/daily.sql:4 `batch_size`"]),
    (D, "partition_column: day", "partition_column: date", [
        "unknown-column models/daily.sql:3 `date` (day)",
    ]),
    # YAML
    (YML, "start: 2024-01-01", "start: [", [
        "bad-yaml infold.yml:4 `:` (while parsing a flow sequence did not find expected ',' or ']')",
    ]),
    (D, "incremental: {}", "incremental: {", [
        "bad-yaml models/daily.sql:5 `---` (while parsing a flow node did not find expected node content)",
    ]),
    (D, "incremental: {}\n---\n", "incremental: {}\n", ["no-front-matter models/daily.sql:1 `---`"]),
    (D, DAILY.partition("SELECT")[0], "---\n- table\n---\n", ["wrong-type models/daily.sql:2 `- table`"]),
]  # fmt: skip

QUERIES = [
    (S, "FROM clicks", "FROM click", ["unknown-table models/sessions.sql:7 `click` (clicks, raw.clicks)"]),
    (S, "FROM clicks", "FROM raw.clickz", [
        "unknown-table models/sessions.sql:7 `raw.clickz` (raw.clicks, clicks, raw.countries)",
    ]),
    (S, "sum(amount)", "sum(amuont)", ["unknown-column models/sessions.sql:6 `amuont` (amount)"]),
    (S, "sum(amount)", "sum(c.amount)", ["unknown-column models/sessions.sql:6 `c.amount` (amount)"]),
    (S, "sum(amount)", "sum(session_start)", ["session-column models/sessions.sql:6 `session_start`"]),
    (S, "AS revenue", "AS session_id", ["session-column models/sessions.sql:6 `sum(amount) AS session_id`"]),
    (S, "AS revenue", "AS User_ID", ["session-column models/sessions.sql:6 `sum(amount) AS User_ID`"]),
    (S, " AS revenue", "", ["unnamed-column models/sessions.sql:6 `sum(amount)`"]),
    (S, "first(url)", "url", ["column-outside-aggregate models/sessions.sql:6 `url`"]),
    (S, "first(url)", "count(clicks.*)", ["unsupported-sql models/sessions.sql:6 `clicks.*`"]),
    (S, "SELECT count(*) AS events, sum(amount) AS revenue, first(url) AS entry_url\nFROM clicks",
     "(SELECT sum(amount) AS revenue FROM clicks)", ["not-session-wise models/sessions.sql:6 `(`"]),
    (S, "first(url)", "revenue / 2", ["unknown-column models/sessions.sql:6 `revenue` (event_ts, event_id)"]),
    (S, "first(url)", "*, 1", ["column-outside-aggregate models/sessions.sql:6 `*`"]),
    (S, "sum(amount)", "sum(count(amount))", ["nested-aggregate models/sessions.sql:6 `count`"]),
    (S, "FROM clicks", "FROM clicks GROUP BY user_id", ["not-session-wise models/sessions.sql:7 `GROUP BY`"]),
    (S, "sum(amount)", "sum(amount) OVER ()", [
        "not-session-wise models/sessions.sql:6 `sum(amount) OVER ()`",
    ]),
    (S, "FROM clicks", "FROM clicks JOIN raw.countries ON code = url", [
        "not-session-wise models/sessions.sql:7 `JOIN`",
    ]),
    (S, "FROM clicks", "FROM raw.countries", [
        "unknown-column models/sessions.sql:6 `amount` (country)",
        "unknown-column models/sessions.sql:6 `url` (code, country)",
    ]),
    (S, "count(*) AS events, sum(amount) AS revenue, first(url) AS entry_url\nFROM clicks",
     "count(*) AS events FROM raw.countries", [
        "unknown-column models/sessions.sql:3 `user_id` (code, country)",
        "unknown-column models/daily.sql:6 `revenue` (events)",

    ]),
    (D, "FROM sessions", "FROM", ["bad-sql models/daily.sql:7 `FROM` (FROM with nothing behind it)"]),
    (D, "sum(revenue)", "sum(revenue", ["bad-sql models/daily.sql:6 `AS` (Expecting ))"]),
    (D, "session_start AS date)", "session_start AS date", ["bad-sql models/daily.sql:6 `(` (a bracket without its other half)"]),
    (D, "sum(revenue)", "'sum(revenue)", ["bad-sql models/daily.sql:6 `'` (a quote or a comment is never closed)"]),
    (D, "GROUP BY 1", "GROUP BY 1; SELECT 1", ["not-one-select models/daily.sql:7 `SELECT`"]),
    (D, DAILY.partition("---\nSELECT")[2], "", ["bad-sql models/daily.sql:6 `SELECT` (SELECT without columns)"]),
    (D, "AS revenue", "AS revenue,", ["bad-sql models/daily.sql:6 `,` (a comma with nothing behind it)"]),
    (D, "SELECT cast", "DELETE FROM sessions; SELECT cast", [
        "not-one-select models/daily.sql:6 `SELECT`",
    ]),
    (D, "FROM sessions", "FROM sessions VERSION AS OF 3", ["unsupported-sql models/daily.sql:7 `sessions`"]),
    (D, "FROM sessions GROUP BY 1", "FROM sessions |> LIMIT 3", ["unsupported-sql models/daily.sql:7 `|>`"]),
    (C, "FROM raw.clicks", "FROM daily", [

        "cycle models/clicks.sql:6 `daily` (clicks -> daily -> sessions -> clicks)",
    ]),
]  # fmt: skip


def name(case: object) -> str | None:
    """A case is called by its new text."""
    return case.strip()[:50] if isinstance(case, str) else ""


@pytest.mark.parametrize(("file", "old", "new", "expected"), [*KEYS, *QUERIES], ids=name)
def test_a_mistake_is_named_with_its_place(
    file: str, old: str, new: str, expected: list[str]
) -> None:
    """One mistake gives one error with line, caret and the nearest valid name."""
    _, found = read(spoilt(file, old, new))

    assert sorted(map(shown, found)) == sorted(expected)


FILES: list[tuple[str, dict[str, str | bytes | None], list[str]]] = [
    ("an empty infold.yml", {YML: ""}, [
        "missing-key infold.yml:1 ``",
        "unknown-table models/clicks.sql:6 `raw.clicks` (clicks)",
    ]),
    ("a list in infold.yml", {YML: "- a"}, ["wrong-type infold.yml:1 `- a`"]),
    ("an alias that holds itself", {YML: "name: &a [*a]"}, [
        "bad-yaml infold.yml:1 `&a [*a]` (it is nested too deeply)",
        "wrong-type infold.yml:1 `&a [*a]`",
        "unknown-table models/clicks.sql:6 `raw.clicks` (clicks)",
    ]),
    ("a file that is not UTF-8", {C: CLICKS.encode() + b"-- \xff"}, [
        "not-utf8 models/clicks.sql:7 `` (208)",
    ]),
    ("a model in Python without one", {"models/x.py": ""}, ["no-model-function models/x.py:1 ``"]),
    ("a model without front matter", {"models/x.sql": "SELECT * FROM clicks"}, [
        "missing-key models/x.sql:1 `SELECT * FROM clicks` (one of view, table, events, sessions, cumulative_aggregate, scd_type_2)",
    ]),
    ("a model with an odd name", {"models/a b.sql": DAILY}, ["bad-name models/a b.sql:1 ``"]),
    ("two models of one name", {"models/x/Daily.sql": DAILY}, [
        "duplicate-name models/x/Daily.sql:1 `` (models/daily.sql:1)",
    ]),
    ("a model with the name of a source's table", {"models/raw__clicks.sql": CLICKS}, [
        "duplicate-name models/raw__clicks.sql:1 `` (infold.yml:4)",
    ]),
    ("a declaration of no model", {YML: INFOLD + "models:\n  dayly: {tags: [x]}\n"}, [
        "unknown-key infold.yml:22 `dayly` (daily)",
    ]),
    ("a declaration that is no mapping", {YML: INFOLD + "models:\n  daily: [x]\n"}, [
        "wrong-type infold.yml:22 `[x]`",
    ]),
    ("an unknown key in defaults", {YML: INFOLD + "defaults: {tag: x}\n"}, [
        "unknown-key infold.yml:21 `tag` (tags, start)",
    ]),
    ("a model that reads a broken one", {C: CLICKS.replace("events", "evens")}, [
        "bad-value models/clicks.sql:2 `evens` (events)",
    ]),
    ("a model that reads itself", {D: DAILY.replace("FROM sessions", "FROM daily")}, [
        "cycle models/daily.sql:7 `daily` (daily -> daily)",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "files", "expected"), FILES, ids=[claim for claim, *_ in FILES])
def test_a_wrong_file_is_named(
    claim: str, files: dict[str, str | bytes], expected: list[str]
) -> None:
    """A file that is wrong, missing or one too many is named."""
    _, found = read({**SHOP, **files})

    assert sorted(map(shown, found)) == sorted(expected), claim


def test_all_mistakes_of_a_project_are_reported_at_once() -> None:
    """Mistakes in keys, YAML and queries of several files
    are all reported, in the order of the files.
    """
    _, found = read(
        {
            YML: INFOLD.replace("start:", "strat:"),
            C: CLICKS.replace("granularity: day", "granularity: dya"),
            S: SHOP[S].replace("count(*) AS events", "cuont(*) AS n, count(usr) AS events"),
            D: DAILY.replace("FROM sessions", "FROM session"),
        }
    )

    assert [(error.slug, str(error.at)) for error in found] == [
        ("unknown-key", "infold.yml:2"),
        ("bad-value", "models/clicks.sql:4"),
        ("unknown-table", "models/daily.sql:7"),
        ("unknown-function", "models/sessions.sql:6"),
    ]


def test_a_message_is_drawn_with_line_and_caret() -> None:
    """A mistake in a query is drawn with its line and caret."""
    _, found = read(spoilt(S, "sum(amount)", "sum(amuont)"))

    assert str(found[0]) == (
        "unknown-column: there is no column 'amuont' in clicks\n"
        "\n"
        "  at:       models/sessions.sql:6\n"
        "  nearest:  amount\n"
        "\n"
        "    SELECT count(*) AS events, sum(amuont) AS revenue, first(url) AS entry_url\n"
        "                                   ^^^^^^"
    )


def test_a_refusal_says_why_and_what_to_do() -> None:
    """A refusal is drawn with the reason and what to do, and has its exit code."""
    _, found = read(spoilt(D, "GROUP BY 1", "GROUP BY user_id"))

    assert found[0].exit_code == 2
    assert str(found[0]) == (
        "group-over-cells: these groups reach over all time, so a day of daily cannot be rebuilt alone\n"
        "\n"
        "  at:          models/daily.sql:7\n"
        "  cells by:    session_start\n"
        "  or declare:  incremental: {bounds: {sessions: {before: …}}}, "
        "how far around its cell each is read (before, after)\n"
        "\n"
        "    FROM sessions GROUP BY user_id\n"
        "                  ^^^^^^^^^^^^^^^^\n"
        "\n"
        "Group by the cell as well (cast(… AS date), date_trunc), or build it whole (remove `incremental`)."
    )
