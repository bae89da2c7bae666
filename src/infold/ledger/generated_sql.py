"""
The ledger's SQL, generated; tests/ledger/test_store.py proves it equal to what it comes from.

``generate_sql`` compiles it from ``schema`` and ``statements``. To do so at the start of every
command would take 0.2 s (docs/decisions/0007-ledger-statements.md has the figures).
"""

from __future__ import annotations

# fmt: off
SCHEMA: tuple[str, ...] = (
    (
        "CREATE TABLE applied ( environment TEXT NOT NULL, model TEXT NOT NULL, digest TEXT NOT "
        "NULL, applied_at BIGINT NOT NULL, PRIMARY KEY (environment, model) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE arrivals ( model TEXT NOT NULL, version BIGINT NOT NULL, cell_start BIGINT "
        "NOT NULL, cell_end BIGINT NOT NULL, received_from BIGINT NOT NULL, received_to BIGINT "
        "NOT NULL, rows BIGINT NOT NULL, PRIMARY KEY (model, version, cell_start, cell_end) ) "
        "WITHOUT ROWID"
    ),
    (
        "CREATE TABLE audits ( model TEXT NOT NULL, audit TEXT NOT NULL, stored BOOLEAN NOT "
        "NULL, range_start BIGINT NOT NULL, range_end BIGINT NOT NULL, state TEXT NOT NULL, "
        "found TEXT NOT NULL, run TEXT NOT NULL, step TEXT NOT NULL, judged_at BIGINT NOT NULL, "
        "PRIMARY KEY (model, audit, stored, range_start) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE cells ( table_name TEXT NOT NULL, cell_start BIGINT NOT NULL, cell_end "
        "BIGINT NOT NULL, rows BIGINT NOT NULL, content BIGINT NOT NULL, last BIGINT, PRIMARY "
        "KEY (table_name, cell_start, cell_end) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE changes ( table_name TEXT NOT NULL, version BIGINT NOT NULL, cell_start "
        "BIGINT NOT NULL, cell_end BIGINT NOT NULL, added BIGINT NOT NULL, removed BIGINT NOT "
        "NULL, rows_before BIGINT NOT NULL, rows_after BIGINT NOT NULL, content_before BIGINT "
        "NOT NULL, content_after BIGINT NOT NULL, PRIMARY KEY (table_name, version, cell_start, "
        "cell_end) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE definitions ( digest TEXT NOT NULL, model TEXT NOT NULL, body TEXT NOT "
        "NULL, kept_at BIGINT NOT NULL, PRIMARY KEY (digest) )"
    ),
    (
        "CREATE TABLE environment_tables ( environment TEXT NOT NULL, table_key TEXT NOT NULL, "
        "model TEXT NOT NULL, identity TEXT NOT NULL, definition TEXT NOT NULL, base TEXT NOT "
        "NULL, current BOOLEAN NOT NULL, PRIMARY KEY (environment, table_key) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE environments ( name TEXT NOT NULL, owner TEXT NOT NULL, created_at BIGINT "
        "NOT NULL, expires_at BIGINT, last_run_at BIGINT, built_at BIGINT, PRIMARY KEY (name) ) "
        "WITHOUT ROWID"
    ),
    (
        "CREATE TABLE file_cells ( model TEXT NOT NULL, file BIGINT NOT NULL, cell_start BIGINT "
        "NOT NULL, cell_end BIGINT NOT NULL, rows BIGINT NOT NULL, dropped BIGINT NOT NULL, "
        "PRIMARY KEY (model, file, cell_start, cell_end) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE files ( id BIGINT NOT NULL, source TEXT NOT NULL, path TEXT NOT NULL, "
        "fingerprint TEXT NOT NULL, size BIGINT NOT NULL, PRIMARY KEY (id) )"
    ),
    (
        "CREATE UNIQUE INDEX files_by_version ON files (source, path, fingerprint)"
    ),
    (
        "CREATE TABLE forward_only ( model TEXT NOT NULL, digest TEXT NOT NULL, effective_from "
        "BIGINT, PRIMARY KEY (model) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE ingests ( model TEXT NOT NULL, file BIGINT NOT NULL, horizon BIGINT NOT "
        "NULL, next_due BIGINT, rows BIGINT NOT NULL, waiting BIGINT NOT NULL, set_aside BIGINT "
        "NOT NULL, dropped BIGINT NOT NULL, received_at BIGINT NOT NULL, PRIMARY KEY (model, "
        "file) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE kept_tables ( swap TEXT NOT NULL, model TEXT NOT NULL, table_key TEXT, "
        "fingerprint TEXT, snapshot BIGINT, step TEXT, run TEXT, PRIMARY KEY (swap, model) ) "
        "WITHOUT ROWID"
    ),
    (
        "CREATE TABLE leases ( name TEXT NOT NULL, token BIGINT NOT NULL, run TEXT, host TEXT, "
        "place TEXT, pid BIGINT, process TEXT, since BIGINT, heartbeat_at BIGINT, PRIMARY KEY "
        "(name) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE left_out ( model TEXT NOT NULL, rows BIGINT NOT NULL, PRIMARY KEY (model) "
        ") WITHOUT ROWID"
    ),
    (
        "CREATE TABLE locations ( name TEXT NOT NULL, location TEXT NOT NULL, PRIMARY KEY (name) "
        ") WITHOUT ROWID"
    ),
    (
        "CREATE TABLE manual_entries ( model TEXT NOT NULL, number BIGINT NOT NULL, session_of "
        "TEXT NOT NULL, held BOOLEAN, session_start BIGINT, session_end BIGINT, reason TEXT NOT "
        "NULL, made_at BIGINT NOT NULL, PRIMARY KEY (model, number) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE meta ( name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name) ) "
        "WITHOUT ROWID"
    ),
    (
        "CREATE TABLE quarantined ( model TEXT NOT NULL, session_of TEXT NOT NULL, session_start "
        'BIGINT NOT NULL, session_end BIGINT NOT NULL, events BIGINT NOT NULL, "session_user" '
        "TEXT, user_at BIGINT, carried TEXT, campaign TEXT, PRIMARY KEY (model, session_of, "
        "session_start) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE runs ( id TEXT NOT NULL, number BIGINT NOT NULL, command TEXT NOT NULL, "
        "state TEXT NOT NULL, as_of BIGINT NOT NULL, started_at BIGINT NOT NULL, finished_at "
        "BIGINT, detail TEXT NOT NULL, receipt TEXT NOT NULL, error TEXT, PRIMARY KEY (id) )"
    ),
    "CREATE UNIQUE INDEX runs_by_number ON runs (number)",
    "CREATE INDEX runs_by_state ON runs (state)",
    (
        "CREATE TABLE steps ( id TEXT NOT NULL, run TEXT NOT NULL, seq INTEGER NOT NULL, model "
        "TEXT NOT NULL, action TEXT NOT NULL, state TEXT NOT NULL, detail TEXT NOT NULL, outcome "
        "TEXT, started_at BIGINT NOT NULL, finished_at BIGINT, error TEXT, PRIMARY KEY (id) )"
    ),
    "CREATE INDEX steps_by_model ON steps (model, run)",
    "CREATE INDEX steps_by_run ON steps (run, seq)",
    "CREATE INDEX steps_by_state ON steps (state)",
    (
        'CREATE TABLE swap_definitions ( swap TEXT NOT NULL, model TEXT NOT NULL, "before" TEXT '
        'NOT NULL, "after" TEXT NOT NULL, PRIMARY KEY (swap, model) ) WITHOUT ROWID'
    ),
    (
        "CREATE TABLE swaps ( id TEXT NOT NULL, number BIGINT NOT NULL, kind TEXT NOT NULL, "
        "environment TEXT NOT NULL, made_at BIGINT NOT NULL, PRIMARY KEY (id) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE trace_definitions ( model TEXT NOT NULL, range_start BIGINT NOT NULL, "
        "range_end BIGINT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (model, range_start) ) "
        "WITHOUT ROWID"
    ),
    (
        "CREATE TABLE trace_entries ( model TEXT NOT NULL, newest BIGINT NOT NULL, PRIMARY KEY "
        "(model) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE trace_inputs ( model TEXT NOT NULL, input TEXT NOT NULL, version BIGINT "
        "NOT NULL, PRIMARY KEY (model, input) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE trace_pending ( model TEXT NOT NULL, seq INTEGER NOT NULL, range_start "
        "BIGINT NOT NULL, range_end BIGINT NOT NULL, cause TEXT NOT NULL, PRIMARY KEY (model, "
        "seq, range_start) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE traces ( model TEXT NOT NULL, fingerprint TEXT NOT NULL, PRIMARY KEY "
        "(model) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE unchanged ( table_name TEXT NOT NULL, version BIGINT NOT NULL, columns "
        "TEXT NOT NULL, range_start BIGINT NOT NULL, range_end BIGINT NOT NULL, PRIMARY KEY "
        "(table_name, version, columns, range_start) ) WITHOUT ROWID"
    ),
    (
        "CREATE TABLE versions ( table_name TEXT NOT NULL, number BIGINT NOT NULL, snapshot "
        "BIGINT, step TEXT NOT NULL, run TEXT NOT NULL, committed_at BIGINT NOT NULL, rows "
        "BIGINT NOT NULL, whole BOOLEAN NOT NULL, PRIMARY KEY (table_name, number) ) WITHOUT "
        "ROWID"
    ),
)

SQL: dict[str, str] = {
    "add_applied": (
        "INSERT INTO applied (environment, model, digest, applied_at) VALUES (:environment, "
        ":model, :digest, :applied_at)"
    ),
    "add_arrival": (
        "INSERT INTO arrivals (model, version, cell_start, cell_end, received_from, received_to, "
        "rows) VALUES (:model, :version, :cell_start, :cell_end, :received_from, :received_to, "
        ":rows)"
    ),
    "add_audit": (
        "INSERT INTO audits (model, audit, stored, range_start, range_end, state, found, run, "
        "step, judged_at) VALUES (:model, :audit, :stored, :range_start, :range_end, :state, "
        ":found, :run, :step, :judged_at)"
    ),
    "add_cell": (
        "INSERT INTO cells (table_name, cell_start, cell_end, rows, content, last) VALUES "
        "(:table_name, :cell_start, :cell_end, :rows, :content, :last)"
    ),
    "add_change": (
        "INSERT INTO changes (table_name, version, cell_start, cell_end, added, removed, "
        "rows_before, rows_after, content_before, content_after) VALUES (:table_name, :version, "
        ":cell_start, :cell_end, :added, :removed, :rows_before, :rows_after, :content_before, "
        ":content_after)"
    ),
    "add_definition": (
        "INSERT INTO definitions (digest, model, body, kept_at) VALUES (:digest, :model, :body, "
        ":kept_at)"
    ),
    "add_entry": (
        "INSERT INTO manual_entries (model, number, session_of, held, session_start, "
        "session_end, reason, made_at) VALUES (:model, :number, :session_of, :held, "
        ":session_start, :session_end, :reason, :made_at)"
    ),
    "add_environment": (
        "INSERT INTO environments (name, owner, created_at, expires_at, last_run_at, built_at) "
        "VALUES (:name, :owner, :created_at, :expires_at, :last_run_at, :built_at)"
    ),
    "add_environment_table": (
        "INSERT INTO environment_tables (environment, table_key, model, identity, definition, "
        "base, current) VALUES (:environment, :table_key, :model, :identity, :definition, :base, "
        ":current)"
    ),
    "add_file": (
        "INSERT INTO files (id, source, path, fingerprint, size) VALUES (:id, :source, :path, "
        ":fingerprint, :size)"
    ),
    "add_file_cell": (
        "INSERT INTO file_cells (model, file, cell_start, cell_end, rows, dropped) VALUES "
        "(:model, :file, :cell_start, :cell_end, :rows, :dropped)"
    ),
    "add_forward_only": (
        "INSERT INTO forward_only (model, digest, effective_from) VALUES (:model, :digest, "
        ":effective_from)"
    ),
    "add_ingest": (
        "INSERT INTO ingests (model, file, horizon, next_due, rows, waiting, set_aside, dropped, "
        "received_at) VALUES (:model, :file, :horizon, :next_due, :rows, :waiting, :set_aside, "
        ":dropped, :received_at)"
    ),
    "add_kept_table": (
        "INSERT INTO kept_tables (swap, model, table_key, fingerprint, snapshot, step, run) "
        "VALUES (:swap, :model, :table_key, :fingerprint, :snapshot, :step, :run)"
    ),
    "add_lease": (
        "INSERT INTO leases (name, token, run, host, place, pid, process, since, heartbeat_at) "
        "VALUES (:name, :token, :run, :host, :place, :pid, :process, :since, :heartbeat_at)"
    ),
    "add_left_out": "INSERT INTO left_out (model, rows) VALUES (:model, :rows)",
    "add_location": "INSERT INTO locations (name, location) VALUES (:name, :location)",
    "add_meta": "INSERT INTO meta (name, value) VALUES (:name, :value)",
    "add_quarantined": (
        "INSERT INTO quarantined (model, session_of, session_start, session_end, events, "
        '"session_user", user_at, carried, campaign) VALUES (:model, :session_of, '
        ":session_start, :session_end, :events, :session_user, :user_at, :carried, :campaign)"
    ),
    "add_run": (
        "INSERT INTO runs (id, number, command, state, as_of, started_at, finished_at, detail, "
        "receipt, error) VALUES (:id, :number, :command, :state, :as_of, :started_at, "
        ":finished_at, :detail, :receipt, :error)"
    ),
    "add_step": (
        "INSERT INTO steps (id, run, seq, model, action, state, detail, outcome, started_at, "
        "finished_at, error) VALUES (:id, :run, :seq, :model, :action, :state, :detail, "
        ":outcome, :started_at, :finished_at, :error)"
    ),
    "add_swap": (
        "INSERT INTO swaps (id, number, kind, environment, made_at) VALUES (:id, :number, :kind, "
        ":environment, :made_at)"
    ),
    "add_swap_definition": (
        'INSERT INTO swap_definitions (swap, model, "before", "after") VALUES (:swap, :model, '
        ":before, :after)"
    ),
    "add_trace": (
        "INSERT INTO traces (model, fingerprint) VALUES (:model, :fingerprint)"
    ),
    "add_trace_definition": (
        "INSERT INTO trace_definitions (model, range_start, range_end, digest) VALUES (:model, "
        ":range_start, :range_end, :digest)"
    ),
    "add_trace_entries": (
        "INSERT INTO trace_entries (model, newest) VALUES (:model, :newest)"
    ),
    "add_trace_input": (
        "INSERT INTO trace_inputs (model, input, version) VALUES (:model, :input, :version)"
    ),
    "add_trace_pending": (
        "INSERT INTO trace_pending (model, seq, range_start, range_end, cause) VALUES (:model, "
        ":seq, :range_start, :range_end, :cause)"
    ),
    "add_unchanged": (
        "INSERT INTO unchanged (table_name, version, columns, range_start, range_end) VALUES "
        "(:table_name, :version, :columns, :range_start, :range_end)"
    ),
    "add_version": (
        "INSERT INTO versions (table_name, number, snapshot, step, run, committed_at, rows, "
        "whole) VALUES (:table_name, :number, :snapshot, :step, :run, :committed_at, :rows, "
        ":whole)"
    ),
    "advance_trace": (
        "UPDATE trace_inputs SET version=:new_version WHERE trace_inputs.model = :of_model AND "
        "trace_inputs.input = :of_input"
    ),
    "applied": (
        "SELECT applied.model, applied.digest, applied.applied_at FROM applied WHERE "
        "applied.environment = :environment ORDER BY applied.model"
    ),
    "arrivals": (
        "SELECT arrivals.model, arrivals.version, arrivals.cell_start, arrivals.cell_end, "
        "arrivals.received_from, arrivals.received_to, arrivals.rows FROM arrivals WHERE "
        "arrivals.model = :model ORDER BY arrivals.version DESC, arrivals.cell_start DESC LIMIT "
        ":limit OFFSET 0"
    ),
    "audits": (
        "SELECT audits.model, audits.audit, audits.stored, audits.range_start, audits.range_end, "
        "audits.state, audits.found, audits.run, audits.step, audits.judged_at FROM audits ORDER "
        "BY audits.model, audits.stored, audits.audit"
    ),
    "beat": (
        "UPDATE leases SET heartbeat_at=:new_heartbeat_at WHERE leases.name = :of_name AND "
        "leases.token = :of_token AND leases.run = :of_run"
    ),
    "bury_runs": (
        "UPDATE runs SET state='died', finished_at=:new_finished_at WHERE runs.state = 'running' "
        "AND runs.id != :of_run"
    ),
    "cells": (
        "SELECT cells.cell_start, cells.cell_end, cells.rows, cells.content, cells.last FROM "
        "cells WHERE cells.table_name = :table_name ORDER BY cells.cell_start, cells.cell_end"
    ),
    "cells_between": (
        "SELECT cells.cell_start, cells.cell_end, cells.rows, cells.content, cells.last FROM "
        "cells WHERE cells.table_name = :table_name AND cells.cell_start < :until AND "
        "cells.cell_end > :since ORDER BY cells.cell_start, cells.cell_end"
    ),
    "cells_of_file": (
        "SELECT file_cells.file, file_cells.cell_start, file_cells.cell_end, file_cells.rows, "
        "file_cells.dropped FROM file_cells WHERE file_cells.model = :model AND file_cells.file "
        "= :file ORDER BY file_cells.file, file_cells.cell_start"
    ),
    "changes": (
        "SELECT changes.version, changes.cell_start, changes.cell_end, changes.added, "
        "changes.removed, changes.rows_before, changes.rows_after, changes.content_before, "
        "changes.content_after FROM changes WHERE changes.table_name = :table_name AND "
        "changes.version > :since ORDER BY changes.version, changes.cell_start, changes.cell_end"
    ),
    "close_run": (
        "UPDATE runs SET state=:new_state, finished_at=:new_finished_at, receipt=:new_receipt, "
        "error=:new_error WHERE runs.id = :of_run"
    ),
    "close_step": (
        "UPDATE steps SET state=:new_state, finished_at=:new_finished_at, error=:new_error WHERE "
        "steps.id = :of_step AND (steps.state = 'intent' OR steps.state = 'prepared')"
    ),
    "definition": (
        "SELECT definitions.body FROM definitions WHERE definitions.digest = :digest"
    ),
    "definition_history": (
        "SELECT definitions.model, definitions.digest, definitions.kept_at FROM definitions "
        "ORDER BY definitions.kept_at, definitions.model, definitions.digest"
    ),
    "definition_kept_at": (
        "SELECT definitions.kept_at FROM definitions WHERE definitions.digest = :digest"
    ),
    "drop_all_quarantined": "DELETE FROM quarantined WHERE quarantined.model = :model",
    "drop_applied": (
        "DELETE FROM applied WHERE applied.environment = :environment AND applied.model = :model"
    ),
    "drop_arrivals": (
        "DELETE FROM arrivals WHERE arrivals.model = :table_name AND arrivals.version <= :upto"
    ),
    "drop_carried_out": (
        "DELETE FROM forward_only WHERE forward_only.model = :model AND forward_only.digest = "
        ":digest"
    ),
    "drop_cell": (
        "DELETE FROM cells WHERE cells.table_name = :table_name AND cells.cell_start = "
        ":cell_start AND cells.cell_end = :cell_end"
    ),
    "drop_cells": "DELETE FROM cells WHERE cells.table_name = :table_name",
    "drop_cells_of_file": (
        "DELETE FROM file_cells WHERE file_cells.model = :model AND file_cells.file = :file"
    ),
    "drop_changes": (
        "DELETE FROM changes WHERE changes.table_name = :table_name AND changes.version <= :upto"
    ),
    "drop_environment": "DELETE FROM environments WHERE environments.name = :name",
    "drop_environment_applied": "DELETE FROM applied WHERE applied.environment = :environment",
    "drop_environment_table": (
        "DELETE FROM environment_tables WHERE environment_tables.table_key = :table_key"
    ),
    "drop_environment_tables": (
        "DELETE FROM environment_tables WHERE environment_tables.environment = :environment"
    ),
    "drop_file_cells": "DELETE FROM file_cells WHERE file_cells.model = :model",
    "drop_forward_only": "DELETE FROM forward_only WHERE forward_only.model = :model",
    "drop_ingest": (
        "DELETE FROM ingests WHERE ingests.model = :model AND ingests.file = :file"
    ),
    "drop_ingests": "DELETE FROM ingests WHERE ingests.model = :model",
    "drop_judged_audits": (
        "DELETE FROM audits WHERE audits.model = :model AND audits.stored = :stored AND "
        "(audits.state != 'failed' OR audits.range_start < :until AND audits.range_end > :since)"
    ),
    "drop_kept_tables": "DELETE FROM kept_tables WHERE kept_tables.swap = :swap",
    "drop_left_out": "DELETE FROM left_out WHERE left_out.model = :model",
    "drop_location": "DELETE FROM locations WHERE locations.name = :name",
    "drop_meta": "DELETE FROM meta WHERE meta.name = :name",
    "drop_quarantined": (
        "DELETE FROM quarantined WHERE quarantined.model = :model AND quarantined.session_of = "
        ":session_of AND quarantined.session_start = :session_start"
    ),
    "drop_swap": "DELETE FROM swaps WHERE swaps.id = :id",
    "drop_swap_definitions": "DELETE FROM swap_definitions WHERE swap_definitions.swap = :swap",
    "drop_trace": "DELETE FROM traces WHERE traces.model = :model",
    "drop_trace_definitions": (
        "DELETE FROM trace_definitions WHERE trace_definitions.model = :model"
    ),
    "drop_trace_entries": "DELETE FROM trace_entries WHERE trace_entries.model = :model",
    "drop_trace_inputs": "DELETE FROM trace_inputs WHERE trace_inputs.model = :model",
    "drop_trace_pending": "DELETE FROM trace_pending WHERE trace_pending.model = :model",
    "drop_unchanged": (
        "DELETE FROM unchanged WHERE unchanged.table_name = :table_name AND unchanged.version <= "
        ":upto"
    ),
    "entries": (
        "SELECT manual_entries.number, manual_entries.session_of, manual_entries.held, "
        "manual_entries.session_start, manual_entries.session_end, manual_entries.reason, "
        "manual_entries.made_at FROM manual_entries WHERE manual_entries.model = :model ORDER BY "
        "manual_entries.number"
    ),
    "environment_tables": (
        "SELECT environment_tables.environment, environment_tables.table_key, "
        "environment_tables.model, environment_tables.identity, environment_tables.definition, "
        "environment_tables.base, environment_tables.current FROM environment_tables ORDER BY "
        "environment_tables.environment, environment_tables.table_key"
    ),
    "environments": (
        "SELECT environments.name, environments.owner, environments.created_at, "
        "environments.expires_at, environments.last_run_at, environments.built_at FROM "
        "environments ORDER BY environments.name"
    ),
    "erase_arrivals": "DELETE FROM arrivals WHERE arrivals.model = :model",
    "erase_audits": "DELETE FROM audits WHERE audits.model = :model",
    "erase_changes": "DELETE FROM changes WHERE changes.table_name = :table_name",
    "erase_entries": "DELETE FROM manual_entries WHERE manual_entries.model = :model",
    "erase_unchanged": "DELETE FROM unchanged WHERE unchanged.table_name = :table_name",
    "erase_versions": "DELETE FROM versions WHERE versions.table_name = :table_name",
    "file": (
        "SELECT files.id, files.path, files.size, files.fingerprint, ingests.horizon, "
        "ingests.next_due, ingests.rows, ingests.waiting, ingests.set_aside, ingests.dropped, "
        "ingests.received_at FROM files JOIN ingests ON ingests.file = files.id WHERE "
        "ingests.model = :model AND ingests.file = :file ORDER BY files.id"
    ),
    "file_cells": (
        "SELECT file_cells.file, file_cells.cell_start, file_cells.cell_end, file_cells.rows, "
        "file_cells.dropped FROM file_cells WHERE file_cells.model = :model ORDER BY "
        "file_cells.file, file_cells.cell_start"
    ),
    "file_id": (
        "SELECT files.id FROM files WHERE files.source = :source AND files.path = :path AND "
        "files.fingerprint = :fingerprint"
    ),
    "file_versions": (
        "SELECT files.path, files.fingerprint, files.id FROM files JOIN ingests ON ingests.file "
        "= files.id WHERE ingests.model = :model"
    ),
    "files": (
        "SELECT files.id, files.path, files.size, files.fingerprint, ingests.horizon, "
        "ingests.next_due, ingests.rows, ingests.waiting, ingests.set_aside, ingests.dropped, "
        "ingests.received_at FROM files JOIN ingests ON ingests.file = files.id WHERE "
        "ingests.model = :model ORDER BY files.id"
    ),
    "files_due": (
        "SELECT files.id, files.path, files.size, files.fingerprint, ingests.horizon, "
        "ingests.next_due, ingests.rows, ingests.waiting, ingests.set_aside, ingests.dropped, "
        "ingests.received_at FROM files JOIN ingests ON ingests.file = files.id WHERE "
        "ingests.model = :model AND ingests.next_due <= :until ORDER BY files.id"
    ),
    "files_of_source": (
        "SELECT files.path, files.fingerprint, files.id FROM files WHERE files.source = :source"
    ),
    "files_set_aside": (
        "SELECT files.id, files.path, files.size, files.fingerprint, ingests.horizon, "
        "ingests.next_due, ingests.rows, ingests.waiting, ingests.set_aside, ingests.dropped, "
        "ingests.received_at FROM files JOIN ingests ON ingests.file = files.id WHERE "
        "ingests.model = :model AND ingests.set_aside > 0 ORDER BY files.id"
    ),
    "finish_step": (
        "UPDATE steps SET state='done', outcome=:new_outcome, finished_at=:new_finished_at WHERE "
        "steps.id = :of_step AND (steps.state = 'intent' OR steps.state = 'prepared')"
    ),
    "forward_only": (
        "SELECT forward_only.model, forward_only.digest, forward_only.effective_from FROM "
        "forward_only ORDER BY forward_only.model"
    ),
    "free_lease": (
        "UPDATE leases SET run=NULL, host=NULL, place=NULL, pid=NULL, process=NULL, since=NULL, "
        "heartbeat_at=NULL WHERE leases.name = :of_name AND leases.token = :of_token AND "
        "leases.run = :of_run"
    ),
    "head": (
        "SELECT versions.table_name, versions.number, versions.snapshot, versions.step, "
        "versions.run, versions.committed_at, versions.rows, versions.whole FROM versions WHERE "
        "versions.table_name = :table_name ORDER BY versions.number DESC LIMIT 1 OFFSET 0"
    ),
    "heads": (
        "WITH RECURSIVE names(name) AS (SELECT min(versions.table_name) AS name FROM versions "
        "UNION ALL SELECT (SELECT min(following.table_name) AS min_1 FROM versions AS following "
        "WHERE following.table_name > names.name) AS anon_1 FROM names WHERE names.name IS NOT "
        "NULL) SELECT versions.table_name, versions.number, versions.snapshot, versions.step, "
        "versions.run, versions.committed_at, versions.rows, versions.whole FROM versions JOIN "
        "names ON versions.table_name = names.name WHERE versions.number = (SELECT "
        "max(own.number) AS max_1 FROM versions AS own WHERE own.table_name = names.name)"
    ),
    "kept_table": (
        "SELECT kept_tables.swap, kept_tables.model, kept_tables.table_key, "
        "kept_tables.fingerprint, kept_tables.snapshot, kept_tables.step, kept_tables.run FROM "
        "kept_tables WHERE kept_tables.table_key = :table_key"
    ),
    "kept_tables": (
        "SELECT kept_tables.swap, kept_tables.model, kept_tables.table_key, "
        "kept_tables.fingerprint, kept_tables.snapshot, kept_tables.step, kept_tables.run FROM "
        "kept_tables WHERE kept_tables.swap = :swap ORDER BY kept_tables.model"
    ),
    "last_file_id": "SELECT max(files.id) AS max_1 FROM files",
    "last_run_number": "SELECT max(runs.number) AS max_1 FROM runs",
    "last_swap_number": "SELECT max(swaps.number) AS max_1 FROM swaps",
    "lease": (
        "SELECT leases.name, leases.token, leases.run, leases.host, leases.place, leases.pid, "
        "leases.process, leases.since, leases.heartbeat_at FROM leases WHERE leases.name = :name"
    ),
    "left_out": "SELECT left_out.model, left_out.rows FROM left_out",
    "locations": (
        "SELECT locations.name, locations.location FROM locations ORDER BY locations.name"
    ),
    "lose_rows": (
        "UPDATE ingests SET dropped=(ingests.dropped + :more) WHERE ingests.model = :of_model "
        "AND ingests.file = :of_file"
    ),
    "lose_rows_in_cell": (
        "UPDATE file_cells SET dropped=(file_cells.dropped + :more) WHERE file_cells.model = "
        ":of_model AND file_cells.file = :of_file AND file_cells.cell_start = :of_start AND "
        "file_cells.cell_end = :of_end"
    ),
    "losing": (
        "SELECT DISTINCT changes.version FROM changes WHERE changes.table_name = :table_name AND "
        "changes.removed > 0 AND changes.cell_start < :until AND changes.cell_end > :since ORDER "
        "BY changes.version"
    ),
    "meta": "SELECT meta.value FROM meta WHERE meta.name = :name",
    "move_audits": "UPDATE audits SET model=:new_key WHERE audits.model = :of_key",
    "move_cells": (
        "UPDATE cells SET table_name=:new_key WHERE cells.table_name = :of_key"
    ),
    "move_file_cells": (
        "UPDATE file_cells SET model=:new_key WHERE file_cells.model = :of_key"
    ),
    "move_ingests": "UPDATE ingests SET model=:new_key WHERE ingests.model = :of_key",
    "move_left_out": "UPDATE left_out SET model=:new_key WHERE left_out.model = :of_key",
    "move_quarantined": (
        "UPDATE quarantined SET model=:new_key WHERE quarantined.model = :of_key"
    ),
    "move_trace_definitions": (
        "UPDATE trace_definitions SET model=:new_key WHERE trace_definitions.model = :of_key"
    ),
    "move_trace_entries": (
        "UPDATE trace_entries SET model=:new_key WHERE trace_entries.model = :of_key"
    ),
    "move_trace_input": (
        "UPDATE trace_inputs SET input=:new_input, version=:new_version WHERE trace_inputs.model "
        "= :of_model AND trace_inputs.input = :of_input"
    ),
    "move_trace_inputs": (
        "UPDATE trace_inputs SET model=:new_key WHERE trace_inputs.model = :of_key"
    ),
    "move_trace_pending": (
        "UPDATE trace_pending SET model=:new_key WHERE trace_pending.model = :of_key"
    ),
    "newest_entries": (
        "SELECT manual_entries.model, max(manual_entries.number) AS max_1 FROM manual_entries "
        "GROUP BY manual_entries.model"
    ),
    "old_arrivals": (
        "SELECT arrivals.version, count(*) AS count_1 FROM arrivals WHERE arrivals.model = "
        ":table_name AND arrivals.version <= :upto GROUP BY arrivals.version ORDER BY "
        "arrivals.version LIMIT :limit OFFSET 0"
    ),
    "old_changes": (
        "SELECT changes.version, count(*) AS count_1 FROM changes WHERE changes.table_name = "
        ":table_name AND changes.version <= :upto GROUP BY changes.version ORDER BY "
        "changes.version LIMIT :limit OFFSET 0"
    ),
    "oldest_inputs": (
        "SELECT trace_inputs.input, min(trace_inputs.version) AS min_1 FROM trace_inputs GROUP "
        "BY trace_inputs.input"
    ),
    "prepare_step": (
        "UPDATE steps SET state='prepared', outcome=:new_outcome WHERE steps.id = :of_step AND "
        "(steps.state = 'intent' OR steps.state = 'prepared')"
    ),
    "quarantined": (
        "SELECT quarantined.session_of, quarantined.session_start, quarantined.session_end, "
        'quarantined.events, quarantined."session_user", quarantined.user_at, '
        "quarantined.carried, quarantined.campaign FROM quarantined WHERE quarantined.model = "
        ":model ORDER BY quarantined.session_start, quarantined.session_of"
    ),
    "restamp_trace": (
        "UPDATE traces SET fingerprint=:new_fingerprint WHERE traces.model = :of_model"
    ),
    "rows_of_table": (
        "SELECT coalesce(sum(cells.rows), 0) AS coalesce_1 FROM cells WHERE cells.table_name = "
        ":table_name"
    ),
    "run": (
        "SELECT runs.id, runs.number, runs.command, runs.state, runs.as_of, runs.started_at, "
        "runs.finished_at, runs.detail, runs.receipt, runs.error FROM runs WHERE runs.id = :id"
    ),
    "runs": (
        "SELECT runs.id, runs.number, runs.command, runs.state, runs.as_of, runs.started_at, "
        "runs.finished_at, runs.detail, runs.receipt, runs.error FROM runs ORDER BY runs.number "
        "DESC LIMIT :limit OFFSET 0"
    ),
    "runs_of_command": (
        "SELECT runs.id, runs.number, runs.command, runs.state, runs.as_of, runs.started_at, "
        "runs.finished_at, runs.detail, runs.receipt, runs.error FROM runs WHERE runs.command = "
        ":command ORDER BY runs.number DESC LIMIT :limit OFFSET 0"
    ),
    "runs_of_model": (
        "SELECT runs.id, runs.number, runs.command, runs.state, runs.as_of, runs.started_at, "
        "runs.finished_at, runs.detail, runs.receipt, runs.error FROM runs WHERE EXISTS (SELECT "
        "* FROM steps WHERE steps.run = runs.id AND steps.model = :model) ORDER BY runs.number "
        "DESC LIMIT :limit OFFSET 0"
    ),
    "step": (
        "SELECT steps.id, steps.run, steps.seq, steps.model, steps.action, steps.state, "
        "steps.detail, steps.outcome, steps.started_at, steps.finished_at, steps.error FROM "
        "steps WHERE steps.id = :id"
    ),
    "steps_of_run": (
        "SELECT steps.id, steps.run, steps.seq, steps.model, steps.action, steps.state, "
        "steps.detail, steps.outcome, steps.started_at, steps.finished_at, steps.error FROM "
        "steps WHERE steps.run = :run ORDER BY steps.seq, steps.id"
    ),
    "swap_definitions": (
        'SELECT swap_definitions.swap, swap_definitions.model, swap_definitions."before", '
        'swap_definitions."after" FROM swap_definitions WHERE swap_definitions.swap = :swap '
        "ORDER BY swap_definitions.model"
    ),
    "swaps": (
        "SELECT swaps.id, swaps.number, swaps.kind, swaps.environment, swaps.made_at FROM swaps "
        "ORDER BY swaps.number DESC"
    ),
    "take_lease": (
        "UPDATE leases SET token=:new_token, run=:new_run, host=:new_host, place=:new_place, "
        "pid=:new_pid, process=:new_process, since=:new_since, heartbeat_at=:new_heartbeat_at "
        "WHERE leases.name = :of_name AND leases.token = :of_token"
    ),
    "trace": "SELECT traces.fingerprint FROM traces WHERE traces.model = :model",
    "trace_definitions": (
        "SELECT trace_definitions.model, trace_definitions.range_start, "
        "trace_definitions.range_end, trace_definitions.digest FROM trace_definitions ORDER BY "
        "trace_definitions.model, trace_definitions.range_start"
    ),
    "trace_entries": (
        "SELECT trace_entries.model, trace_entries.newest FROM trace_entries"
    ),
    "trace_inputs": (
        "SELECT trace_inputs.model, trace_inputs.input, trace_inputs.version FROM trace_inputs"
    ),
    "trace_pending": (
        "SELECT trace_pending.model, trace_pending.seq, trace_pending.range_start, "
        "trace_pending.range_end, trace_pending.cause FROM trace_pending ORDER BY "
        "trace_pending.model, trace_pending.seq, trace_pending.range_start"
    ),
    "traces": "SELECT traces.model, traces.fingerprint FROM traces",
    "unchanged": (
        "SELECT unchanged.version, unchanged.columns, unchanged.range_start, unchanged.range_end "
        "FROM unchanged WHERE unchanged.table_name = :table_name AND unchanged.version > :since "
        "ORDER BY unchanged.version, unchanged.columns, unchanged.range_start"
    ),
    "unfinished": (
        "SELECT steps.id, steps.run, steps.seq, steps.model, steps.action, steps.state, "
        "steps.detail, steps.outcome, steps.started_at, steps.finished_at, steps.error FROM "
        "steps JOIN runs ON runs.id = steps.run WHERE (steps.state = 'intent' OR steps.state = "
        "'prepared') AND steps.run != :run ORDER BY runs.number, steps.seq, steps.id"
    ),
    "versions": (
        "SELECT versions.table_name, versions.number, versions.snapshot, versions.step, "
        "versions.run, versions.committed_at, versions.rows, versions.whole FROM versions WHERE "
        "versions.table_name = :table_name AND versions.number > :since ORDER BY versions.number"
    ),
}
