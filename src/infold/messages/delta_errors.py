"""Errors about tables in Delta Lake."""

from __future__ import annotations

from infold.messages.errors import ExitCode, Finding, Message

UNREADABLE = "delta-unreadable"

not_with_delta = Finding(
    "not-with-delta",
    "`storage: delta` does not go with {what} yet",
    todo="{todo}",
)

extra_missing = Message(
    "delta-reader-missing",
    "tables in Delta Lake are read by deltalake, which is not installed",
    {"table": "{at}"},
    "Install it: pip install 'infold[delta]'",
)

spark_without_delta = Message(
    "no-delta",
    "the Spark session of this process cannot open tables of Delta Lake",
    {"why": "{why}"},
    "Let infold start Spark: it brings what is needed. A Spark that others start has to have the "
    "jars of docs/delta.md on its class path, and their extension in `spark.sql.extensions`.",
)

# A table of infold's own, or one that somebody else made where it is to be.
unreadable = Message(
    UNREADABLE,
    "this table of Delta Lake cannot be read",
    {"table": "{at}", "why": "{why}"},
    "Was it written by a newer program, with a feature that infold's reader lacks? Or were files "
    "in its folder deleted? `infold repair --dry-run` says what can be done.",
    exit_code=ExitCode.FAILED,
)

column_names = Message(
    "delta-column-names",
    "{model} has columns with names that a table of Delta Lake cannot have",
    {"columns": "{names}", "without": "spaces , ; {{ }} ( ) = tabs and line breaks"},
    "Give them other names in the model's query (`AS`). Nothing was written.",
)

# --- a table of somebody else's, as a source

no_source_table = Message(
    "no-delta-table",
    "the folder of source {source} is no table of Delta Lake",
    {"folder": "{folder}", "why": "{why}"},
    "Correct `path` in infold.yml: it is the folder with _delta_log in it. Or correct `format`.",
)

source_feature = Message(
    "delta-feature",
    "the table of source {source} has a feature of Delta Lake that infold does not read",
    {"table": "{folder}", "feature": "{feature}"},
    "Let its owner copy it into a table without that feature, or land its rows as files.",
)

source_unreadable = Message(
    "delta-source-unreadable",
    "the Delta table of source {source} cannot be read",
    {"table": "{folder}", "why": "{why}"},
    "Was it written by a newer program, with a feature that deltalake lacks? Or were files of its "
    "log deleted? Nothing was changed.",
    exit_code=ExitCode.FAILED,
)

# --- and by its name in a Hive metastore

source_catalog = Finding(
    "delta-source-catalog",
    "a Delta table cannot be found in a catalog of type {type}",
    todo="Name a Hive metastore, `catalog: {{type: hive, uri: thrift://HOST:PORT}}`, or the folder "
    "of the table: `path` in place of `table`.",
)

other_entry = Message(
    "delta-other-entry",
    "the table of source {source} is no table of Delta Lake",
    {"table": "{table}", "catalog": "{catalog}", "it is": "{kind}"},
    "Correct `table` in infold.yml. A table of Iceberg is read with `format: iceberg`. A view has "
    "no rows of its own: name the table that it reads, and write its query as a model.",
)

no_table_of_entry = Message(
    "no-delta-table",
    "the metastore leads source {source} to a place where no table of Delta Lake is",
    {"table": "{table}", "folder": "{folder}", "why": "{why}"},
    "Is the folder on another machine, or was it moved? Let the owner of the table correct its "
    "entry, or name the folder in infold.yml: `path` in place of `table` and `catalog`.",
)

source_elsewhere = Message(
    "delta-source-elsewhere",
    "the metastore leads source {source} to a place that infold cannot read",
    {"table": "{table}", "at": "{at}", "why": "{why}"},
    "Name its bucket in `storage_options.buckets` of the target, with what opens it; or the place "
    "in infold.yml, `path` in place of `table` and `catalog`. Tables are read in folders of this "
    "machine, s3://, gs:// and abfss://.",
)

source_in_hdfs = Message(
    "delta-source-elsewhere",
    "the Delta table of source {source} is in HDFS, where infold reads none",
    {"at": "{at}"},
    "Let its owner copy it to s3://, gs:// or abfss://, or land its rows as files.",
)
