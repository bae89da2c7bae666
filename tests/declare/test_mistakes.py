# ruff: noqa: E501 (one case is one row of a table)
"""Every mistake in a project is one error with its place and the nearest valid name.

A case changes one text of a valid project. What is expected is written
as ``slug file:line `text under the caret` (the fact that helps)``.
"""

from __future__ import annotations

from collections.abc import Mapping

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


Case = tuple[str, str, str, list[str]]

TARGET = "  dev: {warehouse: warehouse}"
SOURCE = "  raw.countries:\n    path: countries.csv\n    columns: {code: string, country: string}"


def side_by_side(old: str, prefix: str, first: int, mistakes: Mapping[str, list[str]]) -> Case:
    """Mappings of one line each in infold.yml in place of one, and what is wrong with each."""
    lines = [f"  {prefix}{at}: {{{text}}}" for at, text in enumerate(mistakes)]
    wrong = [
        error.replace(" ", f" {YML}:{first + at} ", 1)
        for at, errors in enumerate(mistakes.values())
        for error in errors
    ]
    return YML, old, "\n".join(lines), wrong


def with_columns(mistakes: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Sources with a column, where they do not say which they have."""
    return {
        text if "columns:" in text else f"{text}, columns: {{code: string}}": errors
        for text, errors in mistakes.items()
    }


# Targets beside each other, first those in which a schema sees a mistake, then others.
TARGETS: list[Mapping[str, list[str]]] = [
    # hooks
    {
        "on_failure: [tell, {}, {command: a, webhook: '${env:U}', body: b}]": [
            "missing-key `{}` (it tells a URL, or runs a `command`)",
            "needless-key `body`",
            "needless-key `webhook`",
            "wrong-type `tell`",
        ],
        "erasure_certificate_key: -----BEGIN PRIVATE KEY-----": ["secret-written-out `` (${env:NAME})"],
        "lineage: {}": ["missing-key `{}` (events go to a URL, or into a `file`)"],
        "lineage: {url: '${env:U}', file: a}": ["needless-key `file`"],
    },
    # hooks
    {
        "on_success: [{command: 'a ${env:U}'}, {webhook: 'ftp://secret'}, {webhook: 'https://a:secret@b'}]": [
            "bad-value `` (https://HOST/PATH, http://HOST/PATH, ${env:NAME}, ${file:PATH})",
            "needless-key `'a ${env:U}'`",
            "password-written-out `` (postgresql+psycopg://USER:${env:LEDGER_PASSWORD}@HOST/DATABASE)",
        ],
        "on_success: {webhook: '${U}', headers: {A: '{stat}'}, body: ['${x}']}": [
            "bad-secret `` (${env:NAME}, ${file:PATH})",
            "bad-secret `` (${env:NAME}, ${file:PATH})",
            "bad-value `` ({state}, {target}, {steps})",
        ],
        "lineage: {url: 'a', headers: {B: '${x}'}}": [
            "bad-secret `` (${env:NAME}, ${file:PATH})",
            "bad-value `` (https://HOST/PATH, http://HOST/PATH, ${env:NAME}, ${file:PATH})",
        ],
    },
    # engines
    {
        "protected: maybe": ["wrong-type `maybe`"],
        "engine: spark": ["bad-value `spark` (local)"],
        "engine: {shared_disk: true}": ["missing-key `{shared_disk: true}`"],
        "spark: {master: yarn, spark.master: yarn, spark.remote: a, remote: 'sc://x'}": [
            "needless-key `master`",
            "needless-key `remote`",
            "needless-key `spark.master`",
            "needless-key `spark.remote`",
        ],
    },
    # engines
    {
        "engine: {master: http://a}": ["bad-value `http://a` (spark://HOST:PORT, yarn, k8s://URL, local[N])"],
        "engine: {master: yarn}": ["not-shared `yarn`"],
        "engine: {submitted: true}": ["not-shared `true`"],
        "engine: {submitted: false}": ["missing-key `{submitted: false}`"],
        "engine: {submitted: true, master: yarn, shared_disk: true}": ["needless-key `master`"],
        "engine: {submitted: true, shared_disk: true}, spark: {spark.driver.memory: 4g, spark.executor.memory: 4g}": [
            "needless-key `spark.driver.memory`",
        ],
        "engine: {remote: 'sc://a:1/;token=${env:T};use_ssl=true'}": ["not-shared `'sc://a:1/;token=${env:T};use_ssl=true'`"],
        "engine: {remote: sc://a, master: yarn, submitted: true, shared_disk: true}": ["needless-key `master`", "needless-key `submitted`"],
        "engine: {remote: http://a, shared_disk: true}": ["bad-value `` (sc://HOST:PORT/;token=${env:NAME})"],
        "engine: {remote: 'sc://a/;session_id=b', shared_disk: true}": ["bad-value `` (sc://HOST:PORT/;token=${env:NAME})"],
        "engine: {remote: 'sc://a/;token=abc', shared_disk: true}": ["secret-written-out `` (sc://HOST:PORT/;token=${env:NAME})"],
        "engine: {remote: 'sc://a/;token=${abc}', shared_disk: true}": ["bad-secret `` (${env:NAME}, ${file:PATH})"],
        "engine: {remote: sc://a, shared_disk: true, executor_wait: 1 hour}, spark: {spark.driver.memory: 4g}": [
            "needless-key `executor_wait`",
            "needless-key `spark.driver.memory`",
        ],
    },
    # catalogs
    {
        "catalog: {uri: a}": ["missing-key `{uri: a}`"],
        "catalog: {type: glue}": ["not-supported-yet `glue` (sqlite, jdbc, rest, hive)"],
        "catalog: {type: rset}": ["bad-value `rset` (rest)"],
        "catalog: {type: jdbc}": ["missing-key `{type: jdbc}`"],
        "catalog: {type: hive, uri: 'http://a', token: '${env:A}'}": [
            "bad-value `` (thrift://HOST:PORT)",
            "unknown-key `token` (type, uri, namespace)",
        ],
    },
    # catalogs
    {
        "catalog: {type: sqlite, uri: a}": ["bad-value `` (sqlite:///FILE)", "needless-key `uri`"],
        "catalog: {type: jdbc, uri: 'jdbc:mysql://a', namespace: a.b}": [
            "bad-name `a.b` (letters, digits and underscores, a letter first)",
            "bad-value `` (postgresql://USER@HOST:PORT/DATABASE)",
        ],
        "catalog: {type: jdbc, uri: 'postgresql://u:p@h/d'}": ["secret-written-out `` (postgresql://USER:${env:NAME}@HOST:PORT/DATABASE)"],
        "catalog: {type: rest, uri: 'http://a', token: '${vault:a}', credential: 'a:${env:B}'}": [
            "bad-secret `` (${env:NAME}, ${file:PATH})",
            "needless-key `credential`",
        ],
        "catalog: {type: rest, uri: 'http://b', token: s3cret}": ["secret-written-out `` (${env:NAME})"],
        "catalog: {type: rest, uri: 'http://c', credential: 'id:s3cret'}": ["secret-written-out `` (${env:NAME})"],
        'catalog: {type: sqlite, uri: "sqlite:///a\\0b"}': ['wrong-type `"sqlite:///a\\0b"`'],
        'warehouse: "a\\0b"': ['wrong-type `"a\\0b"`'],
    },
    # catalogs
    {
        "publish: together, catalog: {type: rest, uri: 'http://a'}": ["catalog-not-together `together`"],
        "catalog: {type: rest, uri: 'http://a', namespace: shop}": ["catalog-same-tables `t1` (shop)"],
        "catalog: {type: rest, uri: 'http://a', namespace: more}": [],
        "catalog: {type: hive, uri: 'thrift://a:9083', namespace: Shop}": [],
        "publish: together, catalog: {type: hive, uri: 'thrift://a:9083'}": ["catalog-not-together `together`", "catalog-same-tables `t4` (shop)"],
    },
    # catalogs
    {
        "warehouse: 's3://lake/a', catalog: {type: sqlite, uri: 'sqlite:///.infold/c.db'}": [],
        "warehouse: 's3://lake/b', catalog: {type: sqlite, uri: 'sqlite:///./.infold/c.db'}": ["catalog-same-tables `t1` (shop)"],
        "warehouse: 's3://lake/b', catalog: {type: sqlite, uri: 'sqlite:///.infold/d.db'}": [],
    },
    # stores
    {
        "warehouse: 'gs://lake/shop'": ["store-without-catalog `'gs://lake/shop'` (gs://lake/shop)"],
        "warehouse: 'abfss://lake@shop.dfs.core.windows.net/a'": [
            "store-without-catalog `'abfss://lake@shop.dfs.core.windows.net/a'` (abfss://lake@shop.dfs.core.windows.net/a)",
        ],
        "warehouse: 'hdfs://name:8020/shop'": ["store-without-catalog `'hdfs://name:8020/shop'` (hdfs://name:8020/shop)"],
        "warehouse: 's3://lake/shop'": ["store-without-catalog `'s3://lake/shop'` (s3://lake/shop)"],
        "warehouse: 'webhdfs://name:9870/shop', catalog: {type: sqlite, uri: 'sqlite:///a.db'}": [
            "not-supported-yet `'webhdfs://name:9870/shop'` (a folder, s3://BUCKET/FOLDER, s3a://BUCKET/FOLDER, gs://BUCKET/FOLDER, abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER, hdfs://NAMENODE:8020/FOLDER)",
        ],
        "warehouse: 's3://*/shop', catalog: {type: sqlite, uri: 'sqlite:///b.db'}": ["no-bucket `'s3://*/shop'` (s3://BUCKET/FOLDER)"],
        "warehouse: 's3://lake/shop', catalog: {type: sqlite, uri: 's3://lake/catalog.db'}": ["bad-value `` (sqlite:///FILE)"],
        "storage_options: {service_account_key: '{}'}": ["password-written-out `` (${env:NAME})"],
    },
    # stores
    {
        "warehouse: 's3://lake/a', catalog: {type: sqlite, uri: 'sqlite:///a.db'}, storage_options: {user: etl, buckets: {'name:8020': {region: a, user: etl}}}": [
            "needless-key `region`",
            "needless-key `user`",
        ],
        "warehouse: 's3://lake/b', catalog: {type: sqlite, uri: 'sqlite:///b.db'}, storage_options: {region: a, endpoint: 'http://a', account_key: '${env:A}', service_account_key: '${env:A}'}": [
            "needless-key `account_key`",
            "needless-key `service_account_key`",
        ],
        "warehouse: 'gs://lake/c', catalog: {type: sqlite, uri: 'sqlite:///c.db'}, storage_options: {region: a, service_account_key: '${env:A}', buckets: {lake: {profile: p}}}": [
            "needless-key `profile`",
        ],
    },
    # stores
    {
        "storage_options: {buckets: {'a@b.dfs.core.windows.net': {region: a}, c: {region: a, sas_token: '${env:A}'}, d: 7}}": [
            "needless-key `region`",
            "needless-key `sas_token`",
            "wrong-type `7`",
        ],
        "storage_options: {access_key_id: AKIA1, regoin: a, endpoint: 'ftp://a'}": [
            "bad-value `` (https://HOST:PORT)",
            "half-a-key `access_key_id`",
            "password-written-out `` (${env:NAME})",
            "unknown-key `regoin` (region, endpoint)",
        ],
        "storage_options: {buckets: {lake: {profile: a, secret_access_key: '${vault:a}'}}}": [
            "bad-secret `` (${env:NAME}, ${file:PATH})",
            "half-a-key `secret_access_key`",
        ],
        "storage_options: {client_id: a, account_key: '${env:A}', sas_token: '${env:A}'}": ["half-a-key `client_id`", "needless-key `sas_token`"],
    },
    # ledgers
    {
        "ledger: 'mysql://u@db'": ["bad-value `` (sqlite:///FILE)"],
        "ledger: 'sqlite:///${env:FOLDER}/ledger.db'": ["bad-value `` (sqlite:///FILE)"],
        "ledger: 'postgresql://u:secret@db/x', ledger: a": [
            "duplicate-key `ledger` (infold.yml:22)",
            "password-written-out `` (postgresql+psycopg://USER:${env:LEDGER_PASSWORD}@HOST/DATABASE)",
        ],
        "ledger: 'postgresql://u:${SECRET}@db/x', ledger_schema: a-b": [
            "bad-name `a-b` (letters, digits and underscores, a letter first, at most 63, and not pg_ at the beginning, which is PostgreSQL's own)",
            "bad-secret `` (${env:NAME}, ${file:PATH})",
        ],
        "ledger: 'postgresql://u@db/x', ledger_schema: pg_x": [
            "bad-name `pg_x` (letters, digits and underscores, a letter first, at most 63, and not pg_ at the beginning, which is PostgreSQL's own)",
        ],
        "ledger_schema: books": ["needless-key `books`"],
    },
    # Delta Lake
    {
        "storage: delta, hide_technical: views, publish: together, engine: {submitted: true, shared_disk: true}": [
            "not-with-delta `together`",
            "not-with-delta `views`",
            "not-with-delta `{submitted: true, shared_disk: true}`",
        ],
        "storage: delta, warehouse: 'hdfs://name:8020/shop'": ["not-with-delta `'hdfs://name:8020/shop'`"],
        "storage: delta, warehouse: 's3://b/w/'": [],
        "warehouse: 's3a://b/w', catalog: {type: sqlite, uri: 'sqlite:///c.db'}": ["not-with-delta `t3`"],
        "storage: delta, warehouse: a, catalog: {type: jdbc, uri: 'postgresql://a@b:5432/c'}, engine: {remote: 'sc://a:15002', shared_disk: true}": [
            "not-with-delta `{remote: 'sc://a:15002', shared_disk: true}`",
            "not-with-delta `{type: jdbc, uri: 'postgresql://a@b:5432/c'}`",
        ],
        "storage: delta, warehouse: 's3://b/x', catalog: {type: rest, uri: 'https://c.example.com'}": [
            "not-with-delta `{type: rest, uri: 'https://c.example.com'}`",
        ],
        "storage: delta, warehouse: c, publish: together, hide_technical: views, catalog: {type: hive, uri: 'thrift://a:9083', namespace: Shop}": [
            "catalog-not-together `together`",
        ],
        "warehouse: d, catalog: {type: hive, uri: 'thrift://a:9083'}": ["catalog-same-tables `t7` (shop)"],
        "warehouse: w": [],
        "storage: delta, warehouse: ./w": ["not-with-delta `t9`"],
    },
]  # fmt: skip
SOURCES: list[Mapping[str, list[str]]] = [
    # names and places
    {
        "path: a.csv, table: shop.a": ["needless-key `table`"],
        "path: b.csv, catalog: other.db": ["needless-key `catalog`"],
        "table: c.c, catalog: {type: rest}": ["missing-key `{type: rest}`"],
        "table: d.d, catalog: {type: sqlite}": ["missing-key `{type: sqlite}`"],
        "table: e.e, catalog: {type: rest, uri: 'http://c', namespace: a}": [
            "unknown-key `namespace` (type, uri, warehouse, token, credential, scope, oauth2_server_uri)",
        ],
        "connection: a, query: SELECT 1": [
            "missing-key `{connection: a, query: SELECT 1, columns: {code: string}}` (a source is files or a Delta table (path), a table in a catalog (table), or in a database (url))",
            "unknown-key `connection` (url, of a source)",
            "unknown-key `query` (table, of a source, which may be a view in its database)",
        ],
        "path: f.csv, delimiter: ';;'": ["wrong-type `';;'`"],
        "table: shop.g, format: delta, catalog: {type: hive}": ["missing-key `{type: hive}`"],
    },
    {
        "path: a.txt": ["missing-key `{path: a.txt, columns: {code: string}}` (the ending of the path does not say it)"],
        "table: b.b, catalog: {type: rest, uri: 'http://c', token: abc}": ["secret-written-out `` (${env:NAME})"],
        "table: shop.c, on_drift: set_aside": ["needless-key `on_drift`"],
        "path: d, format: delta, on_drift: evolve": ["needless-key `on_drift`"],
        "path: e.csv, multiline: true": ["needless-key `multiline`"],
        "path: f.json, delimiter: ;, header: false, quote: none": ["needless-key `delimiter`", "needless-key `header`", "needless-key `quote`"],
        "path: 's3:///a/*.json'": ["no-bucket `'s3:///a/*.json'` (s3://BUCKET/FOLDER)"],
        "path: 'hdfs:///a/*.json'": ["no-bucket `'hdfs:///a/*.json'` (hdfs://NAMENODE:8020/FOLDER)"],
        "path: 'hdfs://etl@name:8020/a/*.json'": ["no-bucket `'hdfs://etl@name:8020/a/*.json'` (hdfs://NAMENODE:8020/FOLDER)"],
        "path: 'gs://*/a/*.json'": ["no-bucket `'gs://*/a/*.json'` (gs://BUCKET/FOLDER)"],
        "path: 'abfss://a@b/a/*.json'": ["no-bucket `'abfss://a@b/a/*.json'` (abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER)"],
        "table: shop.g, format: delta": [
            "missing-key `{table: shop.g, format: delta, columns: {code: string}}` (a Delta table is found by its name in a Hive metastore)",
        ],
        "table: h, format: delta, catalog: {type: rest, uri: 'https://c.example.com'}": [
            "bad-name `h` (namespace.name, as the metastore has it)",
            "delta-source-catalog `{type: rest, uri: 'https://c.example.com'}`",
        ],
        "table: a.b.i, format: delta, catalog: c.db": ["bad-name `a.b.i` (namespace.name, as the metastore has it)", "delta-source-catalog `c.db`"],
        "table: shop.j, format: csv": ["bad-value `csv` (iceberg, delta)"],
        "path: k.json, full_listing: daily": ["needless-key `full_listing`"],
        "path: l, format: delta, settle: 1 minute, on_unreadable: set_aside, may_be_empty: true": ["needless-key `may_be_empty`", "needless-key `on_unreadable`", "needless-key `settle`"],
        "path: m/*, format: iceberg": ["bad-value `iceberg` (csv, json, parquet, avro, orc, delta)"],
        "path: n.json, timestamp_format: epoch_second": ["bad-value `epoch_second` (epoch_seconds, epoch_micros, epoch_millis)"],
        "path: o.json, timestamp_format: HHmmssSSSSSSSSS": [
            "bad-value `HHmmssSSSSSSSSS` (iso, epoch_seconds, epoch_millis, epoch_micros, yyyy-MM-dd HH:mm:ss)",
        ],
    },
    # files by date
    {
        "path: 'in/dt={date}/*.json', full_listing: dayly": ["bad-value `dayly` (daily)"],
        "path: 'in/dt={date}/*.json', listing_window: 2 days": ["needless-key `listing_window`"],
    },
    {
        "path: 'in/clicks-{date}.json'": ["bad-value `'in/clicks-{date}.json'`"],
        "path: 'in/{date}/{date}/*.json'": ["bad-value `'in/{date}/{date}/*.json'`"],
        "path: 'in/{date}-{date}/*.json'": ["bad-value `'in/{date}-{date}/*.json'`"],
        "path: 'in/dt={date}*/*.json'": ["bad-value `'in/dt={date}*/*.json'`"],
        "path: 'in/**/dt={date}/*.json'": ["bad-value `'in/**/dt={date}/*.json'`"],
        "path: 'in/dt={date}/{date}.json'": ["bad-value `'in/dt={date}/{date}.json'`"],
        "path: 'in/dt={date}/'": [
            "bad-value `'in/dt={date}/'`",
            "missing-key `{path: 'in/dt={date}/', columns: {code: string}}` (the ending of the path does not say it)",
        ],
        "path: 'in/dt={date}/.'": [
            "bad-value `'in/dt={date}/.'`",
            "missing-key `{path: 'in/dt={date}/.', columns: {code: string}}` (the ending of the path does not say it)",
        ],
    },
    # databases
    {
        "url: sqlite:///a.db": ["missing-key `{url: sqlite:///a.db, columns: {code: string}}` (it names a table, or a view, of the database)"],
        "table: b, url: sqlite:///a.db, format: csv, path: a.csv, on_drift: error, settle: 1 hour": [
            "bad-value `csv` (jdbc)",
            "needless-key `on_drift`",
            "needless-key `path`",
        ],
        "table: c, url: sqlite:///a.db, corrections: none": ["needless-key `corrections`"],
        "path: d.csv, key: code": ["needless-key `key`"],
        "table: e, url: sqlite:///a.db, key: code": [
            "bad-source-key `code`",
            "missing-key `{table: e, url: sqlite:///a.db, key: code, columns: {code: string}}` (whether rows that were read may change later: none, or reread 3 days)",
        ],
        "table: f, url: sqlite:///a.db, key: cod, corrections: reread": ["bad-value `reread` (reread 3 days)", "unknown-column `cod` (code)"],
    },
    {
        "table: a, format: jdbc": ["missing-key `{table: a, format: jdbc, columns: {code: string}}` (it says where the database is)"],
        "table: b, url: 'jdbc:postgresql://h/d'": ["bad-value `` (postgresql://USER@HOST:PORT/DATABASE, sqlite:///FILE)"],
        "table: c, url: mysql://u:s3cret@h/d": ["password-written-out `` (postgresql+psycopg://USER:${env:LEDGER_PASSWORD}@HOST/DATABASE)"],
        "table: d, url: mysql://u@h/d": ["bad-value `` (sqlite:///FILE)"],
        "table: e, url: 'postgresql://u:${abc}@h/d'": ["bad-secret `` (${env:NAME}, ${file:PATH})"],
        "table: f, url: sqlite:///a.db, key: n, corrections: reread 3 days, columns: {n: bigint}": ["bad-source-key `n`"],
        "table: g, url: sqlite:///a.db, key: n, corrections: reread 0 days, columns: {n: {type: date, optional: true}}": [
            "bad-source-key `n`",
            "bad-value `reread 0 days` (reread 3 days)",
        ],
    },
]  # fmt: skip

KEYS: list[Case] = [
    *(side_by_side(TARGET, "t", 20, mistakes) for mistakes in TARGETS),
    *(side_by_side(SOURCE, "raw.s", 16, with_columns(mistakes)) for mistakes in SOURCES),
    # infold.yml
    (YML, "name: shop\n", "", ["missing-key infold.yml:1 `start: 2024-01-01`"]),
    (YML, "name: shop", "name: my-shop", ["bad-name infold.yml:1 `my-shop` (letters, digits and underscores, a letter first)"]),
    (YML, "start: 2024-01-01", "start: 2024-13-01\nbackfill_limit: 0 days\ndefault_target: pord\ndev_target: prod", [
        "bad-date infold.yml:2 `2024-13-01` (2024-01-31, 2024-01-31T09:00)",
        "bad-duration infold.yml:3 `0 days` (30 minutes, 1 hour 30 minutes, 2 days)",
        "bad-value infold.yml:4 `pord` (dev)",
        "bad-value infold.yml:5 `prod` (dev)",
    ]),
    (YML, "start: 2024-01-01", "name: other", ["duplicate-key infold.yml:2 `name` (infold.yml:1)"]),
    (YML, "name: shop", "environments: {}\naudits: []\ntests: []\nvariables: {}\nname: shop", [
        "not-supported-yet infold.yml:4 `variables`",
        "unknown-key infold.yml:1 `environments` (no key: `infold run --env NAME` makes one)",
        "unknown-key infold.yml:2 `audits` (audits, of a model, and files in audits/)",
        "unknown-key infold.yml:3 `tests` (audits, of a model; unit tests are files in tests/)",
    ]),
    (YML, "dev: {warehouse: warehouse}", "dev: {protected: true}", ["protected-dev infold.yml:20 `true`"]),
    (YML, "raw.clicks:", "clicks:", [
        "bad-name infold.yml:5 `path: landing/clicks/*.json` (group.name, such as raw.clicks)",
        "unknown-table models/clicks.sql:6 `raw.clicks` (clicks, raw.countries)",
    ]),
    (YML, "raw.countries:", "raw.Clicks:", ["duplicate-name infold.yml:16 `raw.Clicks` (infold.yml:4)"]),
    (YML, "  raw.countries:", "  infold.set_aside:", ["duplicate-name infold.yml:16 `infold.set_aside` (infold's own)"]),
    (YML, "    path: countries.csv\n", "", [
        "missing-key infold.yml:17 `columns: {code: string, country: string}` (a source is files or a Delta table (path), a table in a catalog (table), or in a database (url))",
    ]),
    (YML, "    columns: {code: string, country: string}\n", "", [
        "missing-key infold.yml:17 `path: countries.csv` (files are checked against their declared columns)",
    ]),
    (YML, "columns: {code: string, country: string}", "columns: {}", ["missing-key infold.yml:17 `path: countries.csv` (there is not one in it)"]),
    (YML, "event_time_column: event_ts", "event_time_column: event_tz", ["unknown-column infold.yml:7 `event_tz` (event_ts, event_id, seen_at)"]),
    (YML, "event_time_column: event_ts", "event_time_column: url", ["not-a-time infold.yml:7 `url`"]),
    (YML, "    event_time_column: event_ts\n", "", ["needless-key infold.yml:7 `received_column`"]),
    (YML, "received_column: seen_at", "future_tolerance: 2 hours", ["needless-key infold.yml:8 `future_tolerance`"]),
    (YML, "seen_at: timestamp", "seen_at: {type: timestamp, optional: true}", ["optional-time infold.yml:8 `seen_at`"]),
    (YML, "received_column: seen_at", "on_unreadable: ignore\n    settle: soon", [
        "bad-duration infold.yml:9 `soon` (30 minutes, 1 hour 30 minutes, 2 days)",
        "bad-value infold.yml:8 `ignore` (error, set_aside)",
    ]),
    (YML, "amount: decimal(18,2)", "amount: {type: int, default: 1}\n      a: {optional: true, nullable: yes}", [
        "missing-key infold.yml:16 `{optional: true, nullable: yes}`",
        "needless-key infold.yml:15 `default`",
        "unknown-key infold.yml:16 `nullable` (type, optional, default)",
    ]),
    (YML, "amount: decimal(18,2)", "amount: {type: int, optional: true, default: 1.5}\n      a: decimal(2,18)\n      b: text\n      URL: string", [
        "bad-type infold.yml:16 `decimal(2,18)` (decimal)",
        "bad-type infold.yml:17 `text` (string)",
        "duplicate-name infold.yml:18 `URL` (url)",
        "wrong-type infold.yml:15 `1.5`",
    ]),
    (YML, "url: string", "URL_: [string]", ["unknown-column models/clicks.sql:6 `url` (URL_)", "wrong-type infold.yml:14 `[string]`"]),
    (YML, "    path: countries.csv\n    columns: {code: string, country: string}\ntargets:\n  dev: {warehouse: warehouse}",
     "    table: a\n    url: sqlite:///a.db\n    columns: {code: string, country: string}\ntargets:\n  dev: {warehouse: 's3://lake/shop', catalog: {type: sqlite, uri: 'sqlite:///c.db'}}", [
        "extracts-in-store infold.yml:21 `dev`",
    ]),
    # events
    (C, "materialization: events\nunique_key: [event_id]", "materialization: cumulative_aggregate\nincremental: {}", [
        "needless-key models/clicks.sql:3 `incremental`",
        "needless-key models/clicks.sql:4 `timeseries`",
    ]),
    (C, "unique_key: [event_id]\n", "", [
        "missing-key models/clicks.sql:2 `materialization: events` (it tells copies of an event apart from other events)",
    ]),
    (C, "unique_key: [event_id]", "unique_key: []", ["wrong-type models/clicks.sql:3 `[]`"]),
    (C, "unique_key: [event_id]", "unique_key: [evnt_id]\nprefer: [size desc]", [
        "unknown-column models/clicks.sql:3 `evnt_id` (event_id, event_ts, user_id)",
        "unknown-column models/clicks.sql:4 `size desc` (event_id, user_id, event_ts, url, amount)",
    ]),
    (C, "unique_key: [event_id]", "unique_key: [event_id, EVENT_TS]\ndeduplicate: everywhere", ["needless-key models/clicks.sql:4 `everywhere`"]),
    (C, "unique_key: [event_id]", "unique_key: event_id\nprefer: [amount up]", ["bad-value models/clicks.sql:4 `[amount up]` (column, column desc)"]),
    (C, "unique_key: [event_id]",
     "unique_key: [event_id, 5]\nbackfill_limit: 3 days\nincremental: {start: 2024-01-01}\nforward_only: 3\npartitioned_by: [day]\nowner: ann", [
        "needless-key models/clicks.sql:4 `backfill_limit`",
        "needless-key models/clicks.sql:5 `incremental`",
        "not-supported-yet models/clicks.sql:8 `owner`",
        "unknown-key models/clicks.sql:7 `partitioned_by` (timeseries.partition_column (as SQLMesh has it))",
        "wrong-type models/clicks.sql:3 `5`",
        "wrong-type models/clicks.sql:6 `3`",
    ]),
    (C, "granularity: day", "granularity: minute", ["not-supported-yet models/clicks.sql:4 `minute` (hour, day, week, month, quarter, year)"]),
    (C, "granularity: day", "week_start: sunday, partition_column: url", [
        "bad-value models/clicks.sql:4 `url` (event_ts)",
        "needless-key models/clicks.sql:4 `week_start`",
    ]),
    (C, "event_time_column: event_ts", "event_time_column: url", ["not-a-time models/clicks.sql:4 `url`"]),
    (C, "event_time_column: event_ts, ", "", ["missing-key models/clicks.sql:4 `{granularity: day}`"]),
    (C, "timeseries: {event_time_column: event_ts, granularity: day}", "incremental: {}", [
        "missing-key models/clicks.sql:2 `materialization: events` (events are kept by their time: event_time_column)",
        "needless-key models/clicks.sql:4 `incremental`",
    ]),
    # sessions
    (S, "gap: 30 minutes", "gap: 30 minuets, time_zone: Europe/Berlin, without_identifier: drop, cuts: {noon: UTC}", [
        "bad-duration models/sessions.sql:3 `30 minuets` (30 minutes, 1 hour 30 minutes, 2 days)",
        "needless-key models/sessions.sql:3 `without_identifier`",
        "unknown-key models/sessions.sql:3 `noon` (midnight, campaign, start_events, rule)",
        "unknown-key models/sessions.sql:3 `time_zone` (cuts.midnight, of sessions; cron_tz, of a cron; cells are UTC)",
        "wrong-type models/sessions.sql:3 `drop`",
    ]),
    (S, "gap: 30 minutes", "gap: 30", ["bad-duration models/sessions.sql:3 `30` (30 minutes, 1 hour 30 minutes, 2 days)"]),
    (S, "gap: 30 minutes", "gap: 0 minutes, choose_user: last, max_length: 0 hours, keep: head, cuts: {midnight: Europe/Berln, campaign: {nulls: ignore}}", [
        "bad-duration models/sessions.sql:3 `0 hours` (30 minutes, 1 hour 30 minutes, 2 days)",
        "bad-duration models/sessions.sql:3 `0 minutes` (30 minutes, 1 hour 30 minutes, 2 days)",
        "bad-zone models/sessions.sql:3 `Europe/Berln`",
        "missing-key models/sessions.sql:3 `{nulls: ignore}` (what tells one campaign from another)",
        "needless-key models/sessions.sql:3 `choose_user`",
        "needless-key models/sessions.sql:3 `keep`",
    ]),
    (S, ", gap: 30 minutes", "", ["missing-key models/sessions.sql:3 `{user: user_id}` (or identifier: what a session is of)"]),
    (S, "user: user_id", "identifier: url, session_number: true, choose_user: last, without_identifier: {gap: 1 hour}, max_length: 1 day, quarantine_after: 1 day", [
        "missing-key models/sessions.sql:3 `{identifier: url, session_number: true, choose_user: last, without_identifier: {gap: 1 hour}, max_length: 1 day, quarantine_after: 1 day, gap: 30 minutes}` (the user of events without identifier)",
        "missing-key models/sessions.sql:3 `{identifier: url, session_number: true, choose_user: last, without_identifier: {gap: 1 hour}, max_length: 1 day, quarantine_after: 1 day, gap: 30 minutes}` (the user that sessions are numbered for)",
        "needless-key models/sessions.sql:3 `choose_user`",
        "needless-key models/sessions.sql:3 `quarantine_after`",
    ]),
    (S, "user: user_id, gap: 30 minutes", "identifier: []", ["wrong-type models/sessions.sql:3 `[]`"]),
    (S, "gap: 30 minutes", "gap: 30 minutes, cuts: {start_events: count(*) > 1, campaign: [rand() < 0.1, amount > now(), amount > (SELECT 1)]}", [
        "not-of-one-event models/sessions.sql:3 `amount > (SELECT 1)`",
        "not-of-one-event models/sessions.sql:3 `amount > now()`",
        "not-of-one-event models/sessions.sql:3 `count(*) > 1`",
        "not-of-one-event models/sessions.sql:3 `rand() < 0.1`",
    ]),
    (S, "user: user_id", "user: lower(usr_id)", ["unknown-column models/sessions.sql:3 `lower(usr_id)` (user_id)"]),
    (S, "sessions: {user: user_id, gap: 30 minutes}\n", "", [
        "missing-key models/sessions.sql:2 `materialization: sessions` (who has them, and the gap that ends them)",
    ]),
    (S, "sessions: {", "timeseries: {event_time_column: event_ts}\nsessions: {", ["bad-value models/sessions.sql:3 `event_ts` (session_start)"]),
    # tables
    (D, "timeseries: {event_time_column: session_start, partition_column: day, granularity: day}\n", "", [
        "missing-key models/daily.sql:2 `materialization: table` (an incremental table is built cell by cell of time)",
    ]),
    (D, "incremental: {}", "incremental: {lookback: 3, on_additive_change: allow, forward_only: 3, batch_size: 0, safety_overrides: {allow_everything: true}}", [
        "needless-lookback models/daily.sql:4 `lookback`",
        "unknown-key models/daily.sql:4 `allow_everything` (allow_having, allow_distinct, allow_nondeterministic)",
        "unknown-key models/daily.sql:4 `on_additive_change` (no key: a table gets each column that its query gains (as SQLMesh has it))",
        "wrong-type models/daily.sql:4 `0`",
        "wrong-type models/daily.sql:4 `3`",
    ]),
    (D, "incremental: {}", "incremental: {cron: '* * *', cron_tz: Mars/Base, backfill_limit: 0 days}", [
        "bad-cron models/daily.sql:4 `'* * *'` (five fields: minute, hour, day of the month, month, day of the week)",
        "bad-duration models/daily.sql:4 `0 days` (30 minutes, 1 hour 30 minutes, 2 days)",
        "bad-zone models/daily.sql:4 `Mars/Base`",
    ]),
    (D, "incremental: {}", "incremental: {allow_partials: true}", ["needless-key models/daily.sql:4 `allow_partials`"]),
    (D, "incremental: {}", "incremental: {unique_key: [dya], bounds: {clicks: {before: 2 hours}}}", [
        "unknown-column models/daily.sql:4 `dya` (day)",
        "unknown-table models/daily.sql:4 `{before: 2 hours}` (sessions)",
    ]),
    (D, "incremental: {}", "incremental: {}\nforward_only: true\ndeduplicate: everywhere\nstart: 2024-01-01\nbackfill_limit: 3 days\nbatch_size: 3", [
        "needless-key models/daily.sql:5 `forward_only`",
        "needless-key models/daily.sql:6 `deduplicate`",
        "needless-key models/daily.sql:7 `start`",
        "needless-key models/daily.sql:8 `backfill_limit`",
        "unknown-key models/daily.sql:9 `batch_size`",
    ]),
    (D, "partition_column: day", "partition_column: date", ["unknown-column models/daily.sql:3 `date` (day)"]),
    # YAML
    (YML, "start: 2024-01-01", "start: [", ["bad-yaml infold.yml:4 `:` (while parsing a flow sequence did not find expected ',' or ']')"]),
    (D, "incremental: {}", "incremental: {", ["bad-yaml models/daily.sql:5 `---` (while parsing a flow node did not find expected node content)"]),
    (D, "incremental: {}\n---\n", "incremental: {}\n", ["no-front-matter models/daily.sql:1 `---`"]),
    (D, DAILY.partition("SELECT")[0], "---\n- table\n---\n", ["wrong-type models/daily.sql:2 `- table`"]),
]  # fmt: skip

AMOUNTS = "sum(amount) AS revenue, first(url) AS entry_url"
QUERIES = [
    (S, "FROM clicks", "FROM raw.clickz", ["unknown-table models/sessions.sql:7 `raw.clickz` (raw.clicks, clicks, raw.countries)"]),
    (S, AMOUNTS, "sum(session_start) AS revenue, sum(amount) AS session_id, sum(amount) AS User_ID", [
        "session-column models/sessions.sql:6 `session_start`",
        "session-column models/sessions.sql:6 `sum(amount) AS User_ID`",
        "session-column models/sessions.sql:6 `sum(amount) AS session_id`",
    ]),
    (S, AMOUNTS, "sum(amount) OVER () AS revenue, *, 1 AS d, count(clicks.*) AS e", [
        "column-outside-aggregate models/sessions.sql:6 `*`",
        "not-session-wise models/sessions.sql:6 `sum(amount) OVER ()`",
        "unsupported-sql models/sessions.sql:6 `clicks.*`",
    ]),
    (S, f"SELECT count(*) AS events, {AMOUNTS}\nFROM clicks", "(SELECT sum(amount) AS revenue FROM clicks)", ["not-session-wise models/sessions.sql:6 `(`"]),
    (S, "first(url)", "revenue / 2", ["unknown-column models/sessions.sql:6 `revenue` (event_ts, event_id)"]),
    (S, "FROM clicks", "FROM clicks JOIN raw.countries ON code = url", ["not-session-wise models/sessions.sql:7 `JOIN`"]),
    (S, f"count(*) AS events, {AMOUNTS}\nFROM clicks", "count(*) AS events FROM raw.countries", [
        "unknown-column models/sessions.sql:3 `user_id` (code, country)",
        "unknown-column models/daily.sql:6 `revenue` (events)",
    ]),
    (D, "FROM sessions", "FROM", ["bad-sql models/daily.sql:7 `FROM` (FROM with nothing behind it)"]),
    (D, "sum(revenue)", "'sum(revenue)", ["bad-sql models/daily.sql:6 `'` (a quote or a comment is never closed)"]),
    (D, "SELECT cast", "DELETE FROM sessions; SELECT cast", ["not-one-select models/daily.sql:6 `SELECT`"]),
    (D, "FROM sessions", "FROM sessions VERSION AS OF 3", ["unsupported-sql models/daily.sql:7 `sessions`"]),
    (D, "FROM sessions GROUP BY 1", "FROM sessions |> LIMIT 3", ["unsupported-sql models/daily.sql:7 `|>`"]),
    (C, "FROM raw.clicks", "FROM daily", ["cycle models/clicks.sql:6 `daily` (clicks -> daily -> sessions -> clicks)"]),
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
