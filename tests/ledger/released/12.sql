CREATE TABLE applied ( environment TEXT NOT NULL, model TEXT NOT NULL, digest TEXT NOT NULL, applied_at BIGINT NOT NULL, PRIMARY KEY (environment, model) ) WITHOUT ROWID
CREATE TABLE arrivals ( model TEXT NOT NULL, version BIGINT NOT NULL, cell_start BIGINT NOT NULL, cell_end BIGINT NOT NULL, received_from BIGINT NOT NULL, received_to BIGINT NOT NULL, rows BIGINT NOT NULL, PRIMARY KEY (model, version, cell_start, cell_end) ) WITHOUT ROWID
CREATE TABLE audits ( model TEXT NOT NULL, audit TEXT NOT NULL, stored BOOLEAN NOT NULL, range_start BIGINT NOT NULL, range_end BIGINT NOT NULL, state TEXT NOT NULL, found TEXT NOT NULL, run TEXT NOT NULL, step TEXT NOT NULL, judged_at BIGINT NOT NULL, PRIMARY KEY (model, audit, stored, range_start) ) WITHOUT ROWID
CREATE TABLE cells ( table_name TEXT NOT NULL, cell_start BIGINT NOT NULL, cell_end BIGINT NOT NULL, rows BIGINT NOT NULL, content BIGINT NOT NULL, last BIGINT, PRIMARY KEY (table_name, cell_start, cell_end) ) WITHOUT ROWID
CREATE TABLE changes ( table_name TEXT NOT NULL, version BIGINT NOT NULL, cell_start BIGINT NOT NULL, cell_end BIGINT NOT NULL, added BIGINT NOT NULL, removed BIGINT NOT NULL, rows_before BIGINT NOT NULL, rows_after BIGINT NOT NULL, content_before BIGINT NOT NULL, content_after BIGINT NOT NULL, PRIMARY KEY (table_name, version, cell_start, cell_end) ) WITHOUT ROWID
CREATE TABLE definitions ( digest TEXT NOT NULL, model TEXT NOT NULL, body TEXT NOT NULL, kept_at BIGINT NOT NULL, PRIMARY KEY (digest) )
CREATE TABLE environment_tables ( environment TEXT NOT NULL, table_key TEXT NOT NULL, model TEXT NOT NULL, identity TEXT NOT NULL, definition TEXT NOT NULL, base TEXT NOT NULL, current BOOLEAN NOT NULL, PRIMARY KEY (environment, table_key) ) WITHOUT ROWID
CREATE TABLE environments ( name TEXT NOT NULL, owner TEXT NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT, last_run_at BIGINT, built_at BIGINT, PRIMARY KEY (name) ) WITHOUT ROWID
CREATE TABLE erased_keys ( number BIGINT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (number, key) ) WITHOUT ROWID
CREATE TABLE erasure_columns ( erasure TEXT NOT NULL, source TEXT NOT NULL, column_name TEXT NOT NULL, PRIMARY KEY (erasure, source) ) WITHOUT ROWID
CREATE TABLE erasures ( number BIGINT NOT NULL, id TEXT NOT NULL, erasure TEXT NOT NULL, source TEXT, before_at BIGINT, reason TEXT NOT NULL, made_at BIGINT NOT NULL, PRIMARY KEY (number) ) WITHOUT ROWID
CREATE TABLE file_cells ( model TEXT NOT NULL, file BIGINT NOT NULL, cell_start BIGINT NOT NULL, cell_end BIGINT NOT NULL, rows BIGINT NOT NULL, dropped BIGINT NOT NULL, PRIMARY KEY (model, file, cell_start, cell_end) ) WITHOUT ROWID
CREATE TABLE files ( id BIGINT NOT NULL, source TEXT NOT NULL, path TEXT NOT NULL, fingerprint TEXT NOT NULL, size BIGINT NOT NULL, PRIMARY KEY (id) )
CREATE UNIQUE INDEX files_by_version ON files (source, path, fingerprint)
CREATE TABLE forward_only ( model TEXT NOT NULL, digest TEXT NOT NULL, effective_from BIGINT, PRIMARY KEY (model) ) WITHOUT ROWID
CREATE TABLE ingests ( model TEXT NOT NULL, file BIGINT NOT NULL, horizon BIGINT NOT NULL, next_due BIGINT, rows BIGINT NOT NULL, waiting BIGINT NOT NULL, set_aside BIGINT NOT NULL, dropped BIGINT NOT NULL, received_at BIGINT NOT NULL, PRIMARY KEY (model, file) ) WITHOUT ROWID
CREATE TABLE kept_tables ( swap TEXT NOT NULL, model TEXT NOT NULL, table_key TEXT, fingerprint TEXT, snapshot BIGINT, step TEXT, run TEXT, PRIMARY KEY (swap, model) ) WITHOUT ROWID
CREATE TABLE leases ( name TEXT NOT NULL, token BIGINT NOT NULL, run TEXT, host TEXT, place TEXT, pid BIGINT, process TEXT, since BIGINT, heartbeat_at BIGINT, PRIMARY KEY (name) ) WITHOUT ROWID
CREATE TABLE left_out ( model TEXT NOT NULL, rows BIGINT NOT NULL, PRIMARY KEY (model) ) WITHOUT ROWID
CREATE TABLE locations ( name TEXT NOT NULL, location TEXT NOT NULL, PRIMARY KEY (name) ) WITHOUT ROWID
CREATE TABLE manual_entries ( model TEXT NOT NULL, number BIGINT NOT NULL, session_of TEXT NOT NULL, held BOOLEAN, session_start BIGINT, session_end BIGINT, reason TEXT NOT NULL, made_at BIGINT NOT NULL, PRIMARY KEY (model, number) ) WITHOUT ROWID
CREATE TABLE meta ( name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name) ) WITHOUT ROWID
CREATE TABLE quarantined ( model TEXT NOT NULL, session_of TEXT NOT NULL, session_start BIGINT NOT NULL, session_end BIGINT NOT NULL, events BIGINT NOT NULL, "session_user" TEXT, user_at BIGINT, carried TEXT, campaign TEXT, PRIMARY KEY (model, session_of, session_start) ) WITHOUT ROWID
CREATE TABLE runs ( id TEXT NOT NULL, number BIGINT NOT NULL, command TEXT NOT NULL, state TEXT NOT NULL, as_of BIGINT NOT NULL, started_at BIGINT NOT NULL, finished_at BIGINT, detail TEXT NOT NULL, receipt TEXT NOT NULL, error TEXT, PRIMARY KEY (id) )
CREATE UNIQUE INDEX runs_by_number ON runs (number)
CREATE INDEX runs_by_state ON runs (state)
CREATE TABLE steps ( id TEXT NOT NULL, run TEXT NOT NULL, seq INTEGER NOT NULL, model TEXT NOT NULL, action TEXT NOT NULL, state TEXT NOT NULL, detail TEXT NOT NULL, outcome TEXT, started_at BIGINT NOT NULL, finished_at BIGINT, error TEXT, PRIMARY KEY (id) )
CREATE INDEX steps_by_model ON steps (model, run)
CREATE INDEX steps_by_run ON steps (run, seq)
CREATE INDEX steps_by_state ON steps (state)
CREATE TABLE swap_definitions ( swap TEXT NOT NULL, model TEXT NOT NULL, "before" TEXT NOT NULL, "after" TEXT NOT NULL, PRIMARY KEY (swap, model) ) WITHOUT ROWID
CREATE TABLE swaps ( id TEXT NOT NULL, number BIGINT NOT NULL, kind TEXT NOT NULL, environment TEXT NOT NULL, made_at BIGINT NOT NULL, PRIMARY KEY (id) ) WITHOUT ROWID
CREATE TABLE trace_definitions ( model TEXT NOT NULL, range_start BIGINT NOT NULL, range_end BIGINT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (model, range_start) ) WITHOUT ROWID
CREATE TABLE trace_entries ( model TEXT NOT NULL, newest BIGINT NOT NULL, PRIMARY KEY (model) ) WITHOUT ROWID
CREATE TABLE trace_inputs ( model TEXT NOT NULL, input TEXT NOT NULL, version BIGINT NOT NULL, PRIMARY KEY (model, input) ) WITHOUT ROWID
CREATE TABLE trace_pending ( model TEXT NOT NULL, seq INTEGER NOT NULL, range_start BIGINT NOT NULL, range_end BIGINT NOT NULL, cause TEXT NOT NULL, PRIMARY KEY (model, seq, range_start) ) WITHOUT ROWID
CREATE TABLE trace_retention ( model TEXT NOT NULL, starts BIGINT NOT NULL, lost_until BIGINT NOT NULL, frozen_until BIGINT NOT NULL, PRIMARY KEY (model) ) WITHOUT ROWID
CREATE TABLE traces ( model TEXT NOT NULL, fingerprint TEXT NOT NULL, PRIMARY KEY (model) ) WITHOUT ROWID
CREATE TABLE unchanged ( table_name TEXT NOT NULL, version BIGINT NOT NULL, columns TEXT NOT NULL, range_start BIGINT NOT NULL, range_end BIGINT NOT NULL, PRIMARY KEY (table_name, version, columns, range_start) ) WITHOUT ROWID
CREATE TABLE versions ( table_name TEXT NOT NULL, number BIGINT NOT NULL, snapshot BIGINT, step TEXT NOT NULL, run TEXT NOT NULL, committed_at BIGINT NOT NULL, rows BIGINT NOT NULL, whole BOOLEAN NOT NULL, PRIMARY KEY (table_name, number) ) WITHOUT ROWID
