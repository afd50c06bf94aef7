// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd::sim {

/// Lets SQLite take its memory from the simulation's lists. To be called before SQLite is used.
void give_sqlite_memory();

}  // namespace driftd::sim
