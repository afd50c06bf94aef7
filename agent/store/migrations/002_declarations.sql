-- SPDX-License-Identifier: Apache-2.0
-- What sources (Terraform states) declare of the resources of other backends.

CREATE TABLE declaration (
  target TEXT NOT NULL,            -- name of the backend that it speaks of, registered or not
  kind TEXT NOT NULL,
  name TEXT NOT NULL,              -- the id within its kind
  source TEXT NOT NULL,            -- uid of the backend that declares
  digest_low INTEGER NOT NULL,
  digest_high INTEGER NOT NULL,
  metadata TEXT NOT NULL,          -- JSON object of strings
  body TEXT NOT NULL,              -- sealed
  PRIMARY KEY (target, kind, name, source)
);
CREATE INDEX declaration_source ON declaration (source);
