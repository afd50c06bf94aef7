-- SPDX-License-Identifier: Apache-2.0
-- A checksum in each row of state (checksums.hpp). NULL: written in the transaction that is open, signed at its end.

ALTER TABLE meta ADD COLUMN crc INTEGER;
ALTER TABLE backend ADD COLUMN crc INTEGER;
ALTER TABLE established ADD COLUMN crc INTEGER;
ALTER TABLE resource ADD COLUMN crc INTEGER;
ALTER TABLE drift ADD COLUMN crc INTEGER;
ALTER TABLE declaration ADD COLUMN crc INTEGER;
ALTER TABLE sink ADD COLUMN crc INTEGER;
ALTER TABLE delivery ADD COLUMN crc INTEGER;
ALTER TABLE route ADD COLUMN crc INTEGER;
-- The ids of the sinks that an event was routed to, comma-separated; NULL: from before. Routes are made anew from it.
ALTER TABLE event ADD COLUMN routed TEXT;
ALTER TABLE quarantine ADD COLUMN routed TEXT;
