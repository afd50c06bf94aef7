-- SPDX-License-Identifier: Apache-2.0
-- Why events were given up, and how often a receiver refused the content of a waiting event. Both are in the checksum
-- of their row, which is written again by migrations.cpp.

ALTER TABLE sink ADD COLUMN drop_reasons TEXT NOT NULL DEFAULT '{}';  -- JSON: reason -> number; their sum is `dropped`
ALTER TABLE delivery ADD COLUMN refusals INTEGER NOT NULL DEFAULT 0;
UPDATE sink SET drop_reasons = json_object('unrecorded', dropped) WHERE dropped <> 0;
