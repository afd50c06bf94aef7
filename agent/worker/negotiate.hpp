// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/sink.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace driftd::worker {

/// driftd_provider_v1, the one symbol that a plugin exports.
using EntryFunction = driftd_status(const driftd_host_table*, const driftd_offer*, driftd_accept*);
/// driftd_sink_v1, the one symbol that a sink plugin exports.
using SinkEntryFunction = driftd_status(const driftd_sink_host_table*, const driftd_offer*, driftd_sink_accept*);

/// One of our function tables: `size`, `reserved`, then function pointers of one size. Slots that the peer does not
/// have keep the value that they have in `into`.
struct OwnTable {
  void* into = nullptr;            ///< our table, filled with functions for what the peer may lack
  std::size_t size = 0;            ///< sizeof of our struct
  std::size_t first_size = 0;      ///< its sizeof in the first release, which every peer has
  std::vector<const char*> slots;  ///< names in order
};

/// Copies the peer's table over ours. Returns `invalid` if the table is smaller than in its first release or a slot
/// inside its size is NULL; the message starts with `what`. Slots of a newer peer behind our size
/// are not copied.
Status adopt_table(const OwnTable& own, const void* peer, const std::string& what);

/// Returns a full table in which every function answers UNSUPPORTED.
driftd_provider_table unsupported_table();

/// Negotiates a minor version with a plugin. Returns `unsupported` with the numbers of both sides or with the plugin's
/// own refusal, `invalid` if its table cannot be used. An exception of the plugin may pass through.
Result<driftd_provider_table> negotiate(const std::string& file, EntryFunction* entry, bool in_process);
/// The same with a sink plugin.
Result<driftd_sink_table> negotiate_sink(const std::string& file, SinkEntryFunction* entry, bool in_process);
/// Returns the functions of a sink plugin that a provider has, too: describe, schema, probe as health, wake, close and
/// query. The others answer UNSUPPORTED.
driftd_provider_table provider_part(const driftd_sink_table& sink);

}  // namespace driftd::worker
