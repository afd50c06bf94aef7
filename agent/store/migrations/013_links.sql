-- SPDX-License-Identifier: Apache-2.0
-- Links that decide. A decision by a link sets used_ns in its own transaction.

CREATE TABLE decision_link (
  hash TEXT PRIMARY KEY,           -- SHA-256 of the token, hex
  event_id TEXT NOT NULL,
  sink TEXT NOT NULL,
  drift TEXT NOT NULL,
  digest TEXT NOT NULL,            -- of the value that the message shows
  action TEXT NOT NULL,
  created_ns INTEGER NOT NULL,
  expires_ns INTEGER NOT NULL,
  used_ns INTEGER NOT NULL DEFAULT 0,
  crc INTEGER                      -- CRC-32C over hash to used_ns
) WITHOUT ROWID;
CREATE INDEX decision_link_expires ON decision_link (expires_ns);
