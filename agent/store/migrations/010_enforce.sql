-- SPDX-License-Identifier: Apache-2.0
-- Operations by which driftd puts values back (core/enforce/operation.hpp), and the stops that people lift. No value in
-- it is secret. A row is for showing it, for the brakes and for a restart; what is written into a system always comes
-- from the drift, never from here.

CREATE TABLE operation (
  id TEXT PRIMARY KEY,             -- `op-` + 16 hex
  backend TEXT NOT NULL,           -- uid; rows outlive their backend
  backend_name TEXT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  external_name TEXT NOT NULL,
  drift TEXT NOT NULL,
  digest TEXT NOT NULL,            -- of the drift's changes
  changes TEXT NOT NULL,           -- JSON; old: the value found, new: the value to put back
  desired TEXT NOT NULL,           -- whole bodies before it, redacted JSON
  observed TEXT NOT NULL,
  provider TEXT NOT NULL,
  provider_version TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  cause TEXT NOT NULL,             -- policy | person
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  state TEXT NOT NULL,             -- planned | applying | applied | done | failed | refused | conflict | …
  open INTEGER NOT NULL,           -- 1: planned, applying or applied
  commands TEXT NOT NULL,          -- JSON arrays of texts
  undo TEXT NOT NULL,
  text TEXT NOT NULL,
  key TEXT NOT NULL,               -- idempotency key
  writer TEXT NOT NULL,            -- of the value that was found
  attempts INTEGER NOT NULL,
  planned_ns INTEGER NOT NULL,
  updated_ns INTEGER NOT NULL,
  ended_ns INTEGER,
  retry_ns INTEGER,
  accepted INTEGER NOT NULL,       -- 1: the system has accepted the values and is applying them
  forgiven INTEGER NOT NULL        -- 1: a person has lifted what it means for later ones
) WITHOUT ROWID;
CREATE INDEX operation_of_backend ON operation (backend, planned_ns);
CREATE INDEX operation_open ON operation (backend) WHERE open = 1;
CREATE INDEX operation_by_time ON operation (planned_ns);

CREATE TABLE enforcement_stop (
  backend TEXT NOT NULL,           -- uid; all three are empty: everything is switched off
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  reason TEXT NOT NULL,
  actor TEXT NOT NULL,
  at_ns INTEGER NOT NULL,
  lifted_ns INTEGER,               -- NULL: it stands
  lifted_by TEXT NOT NULL,
  PRIMARY KEY (backend, kind, name)
) WITHOUT ROWID;
