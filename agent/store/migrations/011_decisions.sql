-- SPDX-License-Identifier: Apache-2.0
-- Approvals that wait for others, what an approval replaced, silences, and what was sent about which group of drifts.
-- The new columns of `drift` are in its checksum, which is written again by migrations.cpp.

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
