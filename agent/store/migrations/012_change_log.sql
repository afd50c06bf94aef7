-- SPDX-License-Identifier: Apache-2.0
-- Which operations are entries of the change log (docs/change-log.md). How far it was sent is in `meta`:
-- change_log_newest, change_log_acked, change_log_dropped and change_log_refused.

ALTER TABLE operation ADD COLUMN api_version TEXT NOT NULL DEFAULT '';   -- of the kind, `redis/v1`
ALTER TABLE operation ADD COLUMN change_seq INTEGER;                     -- number of its entry; NULL: it has none
ALTER TABLE operation ADD COLUMN change_bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX operation_change ON operation (change_seq, change_bytes) WHERE change_seq IS NOT NULL;
