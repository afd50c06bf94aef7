-- SPDX-License-Identifier: Apache-2.0
-- Events say of which incarnation of the store they are; 0: from before stores had any.
-- meta gains `incarnation`, `commits`, `place`, `untold` and `restored` when they are first written.

ALTER TABLE event ADD COLUMN incarnation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE quarantine ADD COLUMN incarnation INTEGER;
