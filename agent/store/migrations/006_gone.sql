-- SPDX-License-Identifier: Apache-2.0
-- What came and went and nobody accepted, by age: it is forgotten where new resources need its place (engine/room.hpp).

CREATE INDEX resource_gone ON resource (backend, observed_ns) WHERE present = 0 AND has_open = 0 AND baseline IS NULL;
