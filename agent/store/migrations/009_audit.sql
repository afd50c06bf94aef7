-- SPDX-License-Identifier: Apache-2.0
-- Audit lines that belong to one request, the bytes of the audit log, and what was announced of its chain.

ALTER TABLE audit ADD COLUMN request TEXT NOT NULL DEFAULT '';  -- empty: a line of its own

ALTER TABLE audit_chain ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;  -- of the head: of all lines in the table
UPDATE audit_chain SET bytes = (
  SELECT coalesce(sum(48 + length(CAST(actor || verb || subject || reason || outcome || claimed || backend || resource
                                       || digest || changes || hash AS BLOB))), 0) FROM audit)
WHERE position = 'head';
INSERT INTO audit_chain (position, id, hash) VALUES ('announced', 0, '');  -- the last line that an event named

-- Requests whose `asked` line is written and whose outcome is not.
CREATE TABLE audit_open (
  request TEXT PRIMARY KEY,
  id INTEGER NOT NULL              -- of the `asked` line
) WITHOUT ROWID;

-- Rules of each backend as the audit log last named them.
CREATE TABLE audited_rules (
  backend TEXT PRIMARY KEY,        -- name
  rules TEXT NOT NULL              -- JSON object
) WITHOUT ROWID;
