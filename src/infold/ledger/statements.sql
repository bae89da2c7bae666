-- Every statement that the ledger runs, by name, valid for SQLite and PostgreSQL alike. An upsert
-- is a delete and an insert in one transaction, as the two databases write it otherwise. Parameters
-- are named like their columns; in an UPDATE :new_… is written and :of_… is looked for.

-- name: meta
SELECT value FROM meta WHERE name = :name;

-- name: add_meta
INSERT INTO meta (name, value) VALUES (:name, :value);

-- name: drop_meta
DELETE FROM meta WHERE name = :name;

-- name: lease
SELECT name, token, run, host, place, pid, process, since, heartbeat_at
FROM leases
WHERE name = :name;

-- name: add_lease
INSERT INTO leases (name, token, run, host, place, pid, process, since, heartbeat_at)
VALUES (:name, :token, :run, :host, :place, :pid, :process, :since, :heartbeat_at);

-- name: take_lease
UPDATE leases
SET token = :new_token, run = :new_run, host = :new_host, place = :new_place, pid = :new_pid,
    process = :new_process, since = :new_since, heartbeat_at = :new_heartbeat_at
WHERE name = :of_name AND token = :of_token;

-- name: beat
-- Also the fence: it finds no row once the token has grown, and it locks the row that it finds
-- until the transaction ends, so that nobody can take over in the middle of a write. The run too,
-- since a ledger that was made in the place of another counts from 1 again.
UPDATE leases
SET heartbeat_at = :new_heartbeat_at
WHERE name = :of_name AND token = :of_token AND run = :of_run;

-- name: free_lease
UPDATE leases
SET run = NULL, host = NULL, place = NULL, pid = NULL, process = NULL, since = NULL, heartbeat_at
    = NULL
WHERE name = :of_name AND token = :of_token AND run = :of_run;

-- name: last_run_number
SELECT max(number) FROM runs;

-- name: add_run
INSERT INTO runs (id, number, command, state, as_of, started_at, finished_at, detail, receipt,
    error)
VALUES (:id, :number, :command, :state, :as_of, :started_at, :finished_at, :detail, :receipt,
    :error);

-- name: bury_runs
UPDATE runs
SET state = 'died', finished_at = :new_finished_at
WHERE state = 'running' AND id != :of_run;

-- name: close_run
UPDATE runs
SET state = :new_state, finished_at = :new_finished_at, receipt = :new_receipt, error = :new_error
WHERE id = :of_run;

-- name: run
SELECT id, number, command, state, as_of, started_at, finished_at, detail, receipt, error
FROM runs
WHERE id = :id;

-- name: runs
SELECT id, number, command, state, as_of, started_at, finished_at, detail, receipt, error
FROM runs
ORDER BY number DESC
LIMIT :limit OFFSET 0;

-- name: runs_of_model
SELECT runs.id, runs.number, runs.command, runs.state, runs.as_of, runs.started_at,
    runs.finished_at, runs.detail, runs.receipt, runs.error
FROM runs
WHERE EXISTS (SELECT *
FROM steps
WHERE steps.run = runs.id AND steps.model = :model)
ORDER BY runs.number DESC
LIMIT :limit OFFSET 0;

-- name: runs_of_command
SELECT id, number, command, state, as_of, started_at, finished_at, detail, receipt, error
FROM runs
WHERE command = :command
ORDER BY number DESC
LIMIT :limit OFFSET 0;

-- name: add_step
INSERT INTO steps (id, run, seq, model, action, state, detail, outcome, started_at, finished_at,
    error)
VALUES (:id, :run, :seq, :model, :action, :state, :detail, :outcome, :started_at, :finished_at,
    :error);

-- name: step
SELECT id, run, seq, model, action, state, detail, outcome, started_at, finished_at, error
FROM steps
WHERE id = :id;

-- name: steps_of_run
SELECT id, run, seq, model, action, state, detail, outcome, started_at, finished_at, error
FROM steps
WHERE run = :run
ORDER BY seq, id;

-- name: unfinished
SELECT steps.id, steps.run, steps.seq, steps.model, steps.action, steps.state, steps.detail,
    steps.outcome, steps.started_at, steps.finished_at, steps.error
FROM steps
JOIN runs ON runs.id = steps.run
WHERE (steps.state = 'intent' OR steps.state = 'prepared') AND steps.run != :run
ORDER BY runs.number, steps.seq, steps.id;

-- name: prepare_step
UPDATE steps
SET state = 'prepared', outcome = :new_outcome
WHERE id = :of_step AND (state = 'intent' OR state = 'prepared');

-- name: forget_step_errors
UPDATE steps SET error = :instead WHERE error IS NOT NULL;

-- name: forget_run_errors
UPDATE runs SET error = :instead WHERE error IS NOT NULL;

-- name: close_step
UPDATE steps
SET state = :new_state, finished_at = :new_finished_at, error = :new_error
WHERE id = :of_step AND (state = 'intent' OR state = 'prepared');

-- name: finish_step
UPDATE steps
SET state = 'done', outcome = :new_outcome, finished_at = :new_finished_at
WHERE id = :of_step AND (state = 'intent' OR state = 'prepared');

-- name: file_id
SELECT id FROM files WHERE source = :source AND path = :path AND fingerprint = :fingerprint;

-- name: files_at
SELECT id, fingerprint FROM files WHERE source = :source AND path = :path;

-- name: refingerprint
UPDATE files SET fingerprint = :new_print, size = :new_size WHERE id = :of_file;

-- name: files_of_source
SELECT path, fingerprint, id FROM files WHERE source = :source;

-- name: last_file_id
SELECT max(id) FROM files;

-- name: add_file
INSERT INTO files (id, source, path, fingerprint, size)
VALUES (:id, :source, :path, :fingerprint, :size);

-- name: files
SELECT files.id, files.path, files.size, files.fingerprint, ingests.horizon, ingests.next_due,
    ingests.rows, ingests.waiting, ingests.set_aside, ingests.dropped, ingests.received_at
FROM files
JOIN ingests ON ingests.file = files.id
WHERE ingests.model = :model
ORDER BY files.id;

-- name: file
SELECT files.id, files.path, files.size, files.fingerprint, ingests.horizon, ingests.next_due,
    ingests.rows, ingests.waiting, ingests.set_aside, ingests.dropped, ingests.received_at
FROM files
JOIN ingests ON ingests.file = files.id
WHERE ingests.model = :model AND ingests.file = :file
ORDER BY files.id;

-- name: files_due
SELECT files.id, files.path, files.size, files.fingerprint, ingests.horizon, ingests.next_due,
    ingests.rows, ingests.waiting, ingests.set_aside, ingests.dropped, ingests.received_at
FROM files
JOIN ingests ON ingests.file = files.id
WHERE ingests.model = :model AND ingests.next_due <= :until
ORDER BY files.id;

-- name: files_set_aside
SELECT files.id, files.path, files.size, files.fingerprint, ingests.horizon, ingests.next_due,
    ingests.rows, ingests.waiting, ingests.set_aside, ingests.dropped, ingests.received_at
FROM files
JOIN ingests ON ingests.file = files.id
WHERE ingests.model = :model AND ingests.set_aside > 0
ORDER BY files.id;

-- name: file_versions
SELECT files.path, files.fingerprint, files.id
FROM files
JOIN ingests ON ingests.file = files.id
WHERE ingests.model = :model;

-- name: add_ingest
INSERT INTO ingests (model, file, horizon, next_due, rows, waiting, set_aside, dropped,
    received_at)
VALUES (:model, :file, :horizon, :next_due, :rows, :waiting, :set_aside, :dropped, :received_at);

-- name: drop_ingest
DELETE FROM ingests WHERE model = :model AND file = :file;

-- name: drop_ingests
DELETE FROM ingests WHERE model = :model;

-- name: lose_rows
UPDATE ingests SET rows=(rows + :more_rows), dropped=(dropped + :more)
WHERE model = :of_model AND file = :of_file;

-- name: file_cells
SELECT file, cell_start, cell_end, rows, dropped
FROM file_cells
WHERE model = :model
ORDER BY file, cell_start;

-- name: cells_of_file
SELECT file, cell_start, cell_end, rows, dropped
FROM file_cells
WHERE model = :model AND file = :file
ORDER BY file, cell_start;

-- name: add_file_cell
INSERT INTO file_cells (model, file, cell_start, cell_end, rows, dropped)
VALUES (:model, :file, :cell_start, :cell_end, :rows, :dropped);

-- name: drop_cells_of_file
DELETE FROM file_cells WHERE model = :model AND file = :file;

-- name: drop_file_cells
DELETE FROM file_cells WHERE model = :model;

-- name: lose_rows_in_cell
UPDATE file_cells
SET rows=(rows + :more_rows), dropped=(dropped + :more)
WHERE model = :of_model AND file = :of_file AND cell_start = :of_start AND cell_end = :of_end;

-- name: heads
-- The newest version of each table: from name to name by the key, and to the last number of each.
-- A GROUP BY reads all versions that there ever were.
WITH RECURSIVE names(name) AS (
    SELECT min(table_name) FROM versions
    UNION ALL
    SELECT (SELECT min(following.table_name) FROM versions AS following
        WHERE following.table_name > names.name)
    FROM names
    WHERE names.name IS NOT NULL
)
SELECT versions.table_name, versions.number, versions.snapshot, versions.step, versions.run,
    versions.committed_at, versions.rows, versions.whole
FROM versions
JOIN names ON versions.table_name = names.name
WHERE versions.number = (SELECT max(own.number) FROM versions AS own
    WHERE own.table_name = names.name);

-- name: versions
SELECT table_name, number, snapshot, step, run, committed_at, rows, whole
FROM versions
WHERE table_name = :table_name AND number > :since
ORDER BY number;

-- name: add_version
INSERT INTO versions (table_name, number, snapshot, step, run, committed_at, rows, whole)
VALUES (:table_name, :number, :snapshot, :step, :run, :committed_at, :rows, :whole);

-- name: changes
SELECT version, cell_start, cell_end, added, removed, rows_before, rows_after, content_before,
    content_after
FROM changes
WHERE table_name = :table_name AND version > :since
ORDER BY version, cell_start, cell_end;

-- name: unchanged
SELECT version, columns, range_start, range_end
FROM unchanged
WHERE table_name = :table_name AND version > :since
ORDER BY version, columns, range_start;

-- name: add_unchanged
INSERT INTO unchanged (table_name, version, columns, range_start, range_end)
VALUES (:table_name, :version, :columns, :range_start, :range_end);

-- name: losing
SELECT DISTINCT version
FROM changes
WHERE table_name = :table_name AND removed > 0 AND cell_start < :until AND cell_end > :since
ORDER BY version;

-- name: add_change
INSERT INTO changes (table_name, version, cell_start, cell_end, added, removed, rows_before,
    rows_after, content_before, content_after)
VALUES (:table_name, :version, :cell_start, :cell_end, :added, :removed, :rows_before,
    :rows_after, :content_before, :content_after);

-- name: cells
SELECT cell_start, cell_end, rows, content, last
FROM cells
WHERE table_name = :table_name
ORDER BY cell_start, cell_end;

-- name: stored
SELECT table_name, min(cell_start), max(cell_end), sum(cell_end - cell_start), sum(rows), max(last)
FROM cells
GROUP BY table_name;

-- name: cells_between
SELECT cell_start, cell_end, rows, content, last
FROM cells
WHERE table_name = :table_name AND cell_start < :until AND cell_end > :since
ORDER BY cell_start, cell_end;

-- name: rows_of_table
SELECT coalesce(sum(rows), 0) AS coalesce_1 FROM cells WHERE table_name = :table_name;

-- name: add_cell
INSERT INTO cells (table_name, cell_start, cell_end, rows, content, last)
VALUES (:table_name, :cell_start, :cell_end, :rows, :content, :last);

-- name: drop_cell
DELETE FROM cells
WHERE table_name = :table_name AND cell_start = :cell_start AND cell_end = :cell_end;

-- name: drop_cells
DELETE FROM cells WHERE table_name = :table_name;

-- name: quarantined
SELECT session_of, session_start, session_end, events, "session_user", user_at, carried, campaign
FROM quarantined
WHERE model = :model
ORDER BY session_start, session_of;

-- name: add_quarantined
INSERT INTO quarantined (model, session_of, session_start, session_end, events, "session_user",
    user_at, carried, campaign)
VALUES (:model, :session_of, :session_start, :session_end, :events, :session_user, :user_at,
    :carried, :campaign);

-- name: drop_quarantined
DELETE FROM quarantined
WHERE model = :model AND session_of = :session_of AND session_start = :session_start;

-- name: drop_all_quarantined
DELETE FROM quarantined WHERE model = :model;

-- name: entries
SELECT number, session_of, held, session_start, session_end, reason, made_at
FROM manual_entries
WHERE model = :model
ORDER BY number;

-- name: newest_entries
SELECT model, max(number) FROM manual_entries GROUP BY model;

-- name: add_entry
INSERT INTO manual_entries (model, number, session_of, held, session_start, session_end, reason,
    made_at)
VALUES (:model, :number, :session_of, :held, :session_start, :session_end, :reason, :made_at);

-- name: newest_erasures
SELECT erasure, source, max(number) FROM erasures GROUP BY erasure, source;

-- name: erasures
SELECT number, id, erasure, source, before_at, reason, made_at
FROM erasures
WHERE number > :after
ORDER BY number;

-- name: erased_keys
SELECT number, key FROM erased_keys WHERE number > :after ORDER BY number, key;

-- name: erasure_columns
SELECT erasure, source, column_name FROM erasure_columns;

-- name: add_erasure
INSERT INTO erasures (number, id, erasure, source, before_at, reason, made_at)
VALUES (:number, :id, :erasure, :source, :before_at, :reason, :made_at);

-- name: add_erased_key
INSERT INTO erased_keys (number, key) VALUES (:number, :key);

-- name: drop_erasure_columns
DELETE FROM erasure_columns;

-- name: add_erasure_column
INSERT INTO erasure_columns (erasure, source, column_name)
VALUES (:erasure, :source, :column_name);

-- name: left_out
SELECT model, rows FROM left_out;

-- name: add_left_out
INSERT INTO left_out (model, rows) VALUES (:model, :rows);

-- name: drop_left_out
DELETE FROM left_out WHERE model = :model;

-- name: locations
SELECT name, location FROM locations ORDER BY name;

-- name: add_location
INSERT INTO locations (name, location) VALUES (:name, :location);

-- name: drop_location
DELETE FROM locations WHERE name = :name;

-- name: add_arrival
INSERT INTO arrivals (model, version, cell_start, cell_end, received_from, received_to, rows)
VALUES (:model, :version, :cell_start, :cell_end, :received_from, :received_to, :rows);

-- name: arrivals
SELECT model, version, cell_start, cell_end, received_from, received_to, rows
FROM arrivals
WHERE model = :model
ORDER BY version DESC, cell_start DESC
LIMIT :limit OFFSET 0;

-- name: traces
SELECT model, fingerprint FROM traces;

-- name: trace_inputs
SELECT model, input, version FROM trace_inputs;

-- name: trace_pending
SELECT model, seq, range_start, range_end, cause
FROM trace_pending
ORDER BY model, seq, range_start;

-- name: trace_entries
SELECT model, newest FROM trace_entries;

-- name: trace_retention
SELECT model, starts, lost_until, frozen_until FROM trace_retention;

-- name: add_trace
INSERT INTO traces (model, fingerprint) VALUES (:model, :fingerprint);

-- name: advance_trace
UPDATE trace_inputs SET version = :new_version WHERE model = :of_model AND input = :of_input;

-- name: replace_snapshot
UPDATE versions SET snapshot = :new_snapshot WHERE table_name = :of_table AND number = :of_number;

-- name: restamp_trace
UPDATE traces SET fingerprint = :new_fingerprint WHERE model = :of_model;

-- name: add_trace_entries
INSERT INTO trace_entries (model, newest) VALUES (:model, :newest);

-- name: add_trace_retention
INSERT INTO trace_retention (model, starts, lost_until, frozen_until)
VALUES (:model, :starts, :lost_until, :frozen_until);

-- name: add_trace_input
INSERT INTO trace_inputs (model, input, version) VALUES (:model, :input, :version);

-- name: add_trace_pending
INSERT INTO trace_pending (model, seq, range_start, range_end, cause)
VALUES (:model, :seq, :range_start, :range_end, :cause);

-- name: drop_trace
DELETE FROM traces WHERE model = :model;

-- name: drop_trace_inputs
DELETE FROM trace_inputs WHERE model = :model;

-- name: drop_trace_pending
DELETE FROM trace_pending WHERE model = :model;

-- name: drop_trace_entries
DELETE FROM trace_entries WHERE model = :model;

-- name: drop_trace_retention
DELETE FROM trace_retention WHERE model = :model;

-- name: trace_definitions
SELECT model, range_start, range_end, digest FROM trace_definitions ORDER BY model, range_start;

-- name: add_trace_definition
INSERT INTO trace_definitions (model, range_start, range_end, digest)
VALUES (:model, :range_start, :range_end, :digest);

-- name: drop_trace_definitions
DELETE FROM trace_definitions WHERE model = :model;

-- name: forward_only
SELECT model, digest, effective_from FROM forward_only ORDER BY model;

-- name: add_forward_only
INSERT INTO forward_only (model, digest, effective_from) VALUES (:model, :digest, :effective_from);

-- name: drop_forward_only
DELETE FROM forward_only WHERE model = :model;

-- name: drop_carried_out
DELETE FROM forward_only WHERE model = :model AND digest = :digest;

-- name: definition
SELECT body FROM definitions WHERE digest = :digest;

-- name: definition_kept_at
SELECT kept_at FROM definitions WHERE digest = :digest;

-- name: definition_history
SELECT model, digest, kept_at FROM definitions ORDER BY kept_at, model, digest;

-- name: add_definition
INSERT INTO definitions (digest, model, body, kept_at) VALUES (:digest, :model, :body, :kept_at);

-- name: applied
SELECT model, digest, applied_at FROM applied WHERE environment = :environment ORDER BY model;

-- name: add_applied
INSERT INTO applied (environment, model, digest, applied_at)
VALUES (:environment, :model, :digest, :applied_at);

-- name: drop_applied
DELETE FROM applied WHERE environment = :environment AND model = :model;

-- name: environments
-- Environments, and what erases a table of theirs from the ledger.
SELECT name, owner, created_at, expires_at, last_run_at, built_at FROM environments ORDER BY name;

-- name: environment_tables
SELECT environment, table_key, model, identity, definition, base, current
FROM environment_tables
ORDER BY environment, table_key;

-- name: add_environment
INSERT INTO environments (name, owner, created_at, expires_at, last_run_at, built_at)
VALUES (:name, :owner, :created_at, :expires_at, :last_run_at, :built_at);

-- name: drop_environment
DELETE FROM environments WHERE name = :name;

-- name: add_environment_table
INSERT INTO environment_tables (environment, table_key, model, identity, definition, base,
    current)
VALUES (:environment, :table_key, :model, :identity, :definition, :base, :current);

-- name: drop_environment_tables
DELETE FROM environment_tables WHERE environment = :environment;

-- name: drop_environment_applied
DELETE FROM applied WHERE environment = :environment;

-- name: erase_versions
DELETE FROM versions WHERE table_name = :table_name;

-- name: erase_changes
DELETE FROM changes WHERE table_name = :table_name;

-- name: erase_unchanged
DELETE FROM unchanged WHERE table_name = :table_name;

-- name: erase_arrivals
DELETE FROM arrivals WHERE model = :model;

-- name: erase_entries
DELETE FROM manual_entries WHERE model = :model;

-- name: move_trace_inputs
UPDATE trace_inputs SET model = :new_key WHERE model = :of_key;

-- name: move_trace_pending
UPDATE trace_pending SET model = :new_key WHERE model = :of_key;

-- name: move_trace_entries
UPDATE trace_entries SET model = :new_key WHERE model = :of_key;

-- name: move_trace_retention
UPDATE trace_retention SET model = :new_key WHERE model = :of_key;

-- name: move_trace_definitions
UPDATE trace_definitions SET model = :new_key WHERE model = :of_key;

-- name: move_cells
UPDATE cells SET table_name = :new_key WHERE table_name = :of_key;

-- name: move_ingests
UPDATE ingests SET model = :new_key WHERE model = :of_key;

-- name: move_file_cells
UPDATE file_cells SET model = :new_key WHERE model = :of_key;

-- name: move_quarantined
UPDATE quarantined SET model = :new_key WHERE model = :of_key;

-- name: move_left_out
UPDATE left_out SET model = :new_key WHERE model = :of_key;

-- name: move_audits
UPDATE audits SET model = :new_key WHERE model = :of_key;

-- name: trace
SELECT fingerprint FROM traces WHERE model = :model;

-- name: head
SELECT table_name, number, snapshot, step, run, committed_at, rows, whole
FROM versions
WHERE table_name = :table_name
ORDER BY number DESC
LIMIT 1 OFFSET 0;

-- name: move_trace_input
UPDATE trace_inputs
SET input = :new_input, version = :new_version
WHERE model = :of_model AND input = :of_input;

-- name: swaps
SELECT id, number, kind, environment, made_at FROM swaps ORDER BY number DESC;

-- name: last_swap_number
SELECT max(number) FROM swaps;

-- name: add_swap
INSERT INTO swaps (id, number, kind, environment, made_at)
VALUES (:id, :number, :kind, :environment, :made_at);

-- name: drop_swap
DELETE FROM swaps WHERE id = :id;

-- name: kept_tables
SELECT swap, model, table_key, fingerprint, snapshot, step, run
FROM kept_tables
WHERE swap = :swap
ORDER BY model;

-- name: kept_table
SELECT swap, model, table_key, fingerprint, snapshot, step, run
FROM kept_tables
WHERE table_key = :table_key;

-- name: add_kept_table
INSERT INTO kept_tables (swap, model, table_key, fingerprint, snapshot, step, run)
VALUES (:swap, :model, :table_key, :fingerprint, :snapshot, :step, :run);

-- name: drop_kept_tables
DELETE FROM kept_tables WHERE swap = :swap;

-- name: swap_definitions
SELECT swap, model, "before", "after" FROM swap_definitions WHERE swap = :swap ORDER BY model;

-- name: add_swap_definition
INSERT INTO swap_definitions (swap, model, "before", "after")
VALUES (:swap, :model, :before, :after);

-- name: drop_swap_definitions
DELETE FROM swap_definitions WHERE swap = :swap;

-- name: drop_environment_table
DELETE FROM environment_tables WHERE table_key = :table_key;

-- name: audits
SELECT model, audit, stored, range_start, range_end, state, found, run, step, judged_at
FROM audits
ORDER BY model, stored, audit;

-- name: add_audit
INSERT INTO audits (model, audit, stored, range_start, range_end, state, found, run, step,
    judged_at)
VALUES (:model, :audit, :stored, :range_start, :range_end, :state, :found, :run, :step,
    :judged_at);

-- name: replace_found
UPDATE audits SET found = :new_found
WHERE model = :of_model AND audit = :of_audit AND stored = :of_stored AND range_start = :of_start;

-- name: drop_judged_audits
-- What was found is replaced by what is found of the same stretch; what passed, by anything.
DELETE FROM audits
WHERE model = :model AND stored = :stored AND (state != 'failed' OR range_start < :until AND
    range_end > :since);

-- name: erase_audits
DELETE FROM audits WHERE model = :model;

-- name: oldest_inputs
-- What is no longer needed: by table and version, a bounded number of versions at a time.
SELECT input, min(version) FROM trace_inputs GROUP BY input;

-- name: old_changes
SELECT version, count(*)
FROM changes
WHERE table_name = :table_name AND version <= :upto
GROUP BY version
ORDER BY version
LIMIT :limit OFFSET 0;

-- name: drop_changes
DELETE FROM changes WHERE table_name = :table_name AND version <= :upto;

-- name: drop_unchanged
DELETE FROM unchanged WHERE table_name = :table_name AND version <= :upto;

-- name: old_arrivals
SELECT version, count(*)
FROM arrivals
WHERE model = :table_name AND version <= :upto
GROUP BY version
ORDER BY version
LIMIT :limit OFFSET 0;

-- name: drop_arrivals
DELETE FROM arrivals WHERE model = :table_name AND version <= :upto;
