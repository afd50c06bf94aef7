-- SPDX-License-Identifier: Apache-2.0
-- Audit lines say what was decided and by which process, and each one's hash covers the line before it.

ALTER TABLE audit ADD COLUMN outcome TEXT NOT NULL DEFAULT '';   -- empty: done; else why not
ALTER TABLE audit ADD COLUMN uid INTEGER NOT NULL DEFAULT -1;
ALTER TABLE audit ADD COLUMN gid INTEGER NOT NULL DEFAULT -1;
ALTER TABLE audit ADD COLUMN pid INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN claimed TEXT NOT NULL DEFAULT '';   -- what the caller says of itself
ALTER TABLE audit ADD COLUMN backend TEXT NOT NULL DEFAULT '';   -- name
ALTER TABLE audit ADD COLUMN resource TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN digest TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN changes TEXT NOT NULL DEFAULT '';   -- JSON list of {path, old, new}, redacted
ALTER TABLE audit ADD COLUMN expires_ns INTEGER;
ALTER TABLE audit ADD COLUMN hash TEXT NOT NULL DEFAULT '';      -- empty: older than the chain

-- The line in front of the first one of the chain, and the last line.
CREATE TABLE audit_chain (
  position TEXT PRIMARY KEY,       -- anchor | head
  id INTEGER NOT NULL,
  hash TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO audit_chain SELECT 'anchor', coalesce(max(id), 0), '' FROM audit;
INSERT INTO audit_chain SELECT 'head', coalesce(max(id), 0), '' FROM audit;
