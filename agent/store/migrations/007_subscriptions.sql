-- SPDX-License-Identifier: Apache-2.0
-- Subscriptions of the gRPC API (docs/grpc.md). A callback's cursor is the row of its sink.

CREATE TABLE subscription (
  id INTEGER PRIMARY KEY,
  subscriber TEXT NOT NULL UNIQUE,
  backend_names TEXT NOT NULL,     -- JSON array of strings
  event_types TEXT NOT NULL,       -- JSON array of the numbers of ChangeType, as strings
  callback_endpoint TEXT NOT NULL,
  crc INTEGER                      -- CRC-32C over subscriber to callback_endpoint
);
