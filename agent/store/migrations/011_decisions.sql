-- SPDX-License-Identifier: Apache-2.0
-- Approvals that wait for others, what an approval replaced, silences, what was sent about which group of drifts, and
-- links that decide. The new columns of `drift` are in its checksum, which is written again by migrations.cpp.

ALTER TABLE drift ADD COLUMN approvals_needed INTEGER NOT NULL DEFAULT 1;
ALTER TABLE drift ADD COLUMN approvals TEXT NOT NULL DEFAULT '';  -- JSON array; empty: none
ALTER TABLE drift ADD COLUMN former TEXT NOT NULL DEFAULT '';     -- JSON object; empty: the approval cannot be undone

-- What the agent remembers of its notifications: group/<key>, limits. One row a group, deleted when it has ended.
CREATE TABLE notification (
  name TEXT PRIMARY KEY,
  state TEXT NOT NULL,             -- JSON object
  crc INTEGER                      -- CRC-32C over name and state
) WITHOUT ROWID;

CREATE TABLE silence (
  id TEXT PRIMARY KEY,
  matcher TEXT NOT NULL,           -- JSON object of globs
  author TEXT NOT NULL,
  reason TEXT NOT NULL,
  created_ns INTEGER NOT NULL,
  expires_ns INTEGER NOT NULL,
  crc INTEGER                      -- CRC-32C over id to expires_ns
) WITHOUT ROWID;

-- A link's token itself is never stored.
CREATE TABLE link (
  token_hash TEXT PRIMARY KEY,     -- hex SHA-256
  drift TEXT NOT NULL,
  digest TEXT NOT NULL,            -- Drift::digest of the values that the link shows
  verb TEXT NOT NULL,
  sink TEXT NOT NULL,              -- whom it was sent to
  expires_ns INTEGER NOT NULL,
  used_ns INTEGER,
  crc INTEGER                      -- CRC-32C over token_hash to used_ns
) WITHOUT ROWID;
CREATE INDEX link_expires ON link (expires_ns);
