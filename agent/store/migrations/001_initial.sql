-- SPDX-License-Identifier: Apache-2.0
-- State, drifts, events, outbox and audit of one agent. Times are nanoseconds since the Unix epoch.

CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO meta VALUES ('hlc', 0), ('agent_sequence', 0);

CREATE TABLE backend (
  id INTEGER PRIMARY KEY,
  uid TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  provider TEXT NOT NULL,
  registration TEXT NOT NULL,
  system_identity TEXT NOT NULL,
  cursor TEXT NOT NULL,
  watch_cursor TEXT NOT NULL,
  health INTEGER NOT NULL,
  sequence INTEGER NOT NULL,       -- of its last event, without gaps
  deleted_ns INTEGER,
  notes TEXT NOT NULL              -- JSON object of strings
);
CREATE TABLE established (
  backend INTEGER NOT NULL,
  kind TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (backend, kind)
) WITHOUT ROWID;

-- Bodies stand last: the index is read from the front of a row without its overflow pages.
CREATE TABLE resource (
  id INTEGER PRIMARY KEY,
  backend INTEGER NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,              -- the id within its kind
  revision INTEGER NOT NULL,
  digest_low INTEGER NOT NULL,
  digest_high INTEGER NOT NULL,
  rules_generation INTEGER NOT NULL,
  present INTEGER NOT NULL,        -- observed is there
  has_open INTEGER NOT NULL,
  schema_revision INTEGER NOT NULL,
  observed_ns INTEGER NOT NULL,
  external_name TEXT NOT NULL,
  observed_external_name TEXT NOT NULL,
  origin TEXT NOT NULL,
  version TEXT NOT NULL,
  status TEXT NOT NULL,
  metadata TEXT NOT NULL,          -- JSON object of strings
  was_unread TEXT NOT NULL,        -- JSON array of strings
  baseline TEXT,
  observed TEXT,
  UNIQUE (backend, kind, name)
);

CREATE TABLE drift (
  id TEXT PRIMARY KEY,
  open INTEGER NOT NULL,
  resource INTEGER NOT NULL,
  position INTEGER NOT NULL,       -- among the open drifts of its resource
  backend TEXT NOT NULL,           -- uid
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  class TEXT NOT NULL,
  against TEXT NOT NULL,
  action TEXT NOT NULL,
  operation TEXT NOT NULL,
  status TEXT NOT NULL,
  digest TEXT NOT NULL,
  opened_ns INTEGER NOT NULL,
  updated_ns INTEGER NOT NULL,
  stale_since_ns INTEGER,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  decided_ns INTEGER,
  expires_ns INTEGER,
  claimed_by TEXT NOT NULL,
  claim_until_ns INTEGER,
  ended_ns INTEGER,                -- left the open set
  changes TEXT NOT NULL            -- JSON array
);
CREATE INDEX drift_open ON drift (resource, position) WHERE open = 1;
CREATE INDEX drift_ended ON drift (ended_ns) WHERE open = 0;

-- AUTOINCREMENT: a plain rowid is used again after a delete, and a cursor would skip it.
CREATE TABLE event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  recorded_ns INTEGER NOT NULL,
  agent_event INTEGER NOT NULL,
  key TEXT NOT NULL,
  backend TEXT NOT NULL,
  backend_type TEXT NOT NULL,
  source TEXT NOT NULL,
  what TEXT NOT NULL,
  cluster TEXT NOT NULL,
  provider TEXT NOT NULL,
  resource TEXT NOT NULL,
  type INTEGER NOT NULL,
  crc INTEGER NOT NULL,            -- CRC-32C over all other columns but seq
  payload BLOB NOT NULL
);
-- Events whose checksum did not match, as they were found.
CREATE TABLE quarantine (
  seq INTEGER PRIMARY KEY,
  found_ns INTEGER NOT NULL,
  reason TEXT NOT NULL,
  id TEXT, sequence INTEGER, recorded_ns INTEGER, agent_event INTEGER, key TEXT, backend TEXT, backend_type TEXT,
  source TEXT, what TEXT, cluster TEXT, provider TEXT, resource TEXT, type INTEGER, crc INTEGER, payload BLOB
);

-- emitted = acked + pending + dead + dropped; pending and dead are counted from route and delivery.
CREATE TABLE sink (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  closed INTEGER NOT NULL DEFAULT 0,
  low_water INTEGER NOT NULL,
  notes TEXT NOT NULL DEFAULT '{}',
  emitted INTEGER NOT NULL DEFAULT 0,
  acked INTEGER NOT NULL DEFAULT 0,
  dropped INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE route (
  sink INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (sink, seq)
) WITHOUT ROWID;
-- Sparse exceptions to the low-water mark.
CREATE TABLE delivery (
  sink INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  dead INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  next_ns INTEGER NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (sink, seq)
) WITHOUT ROWID;

CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at_ns INTEGER NOT NULL,
  actor TEXT NOT NULL,
  verb TEXT NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT NOT NULL
);
