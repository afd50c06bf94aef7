// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/sink.h>

#include "check/check.hpp"
#include "check/host.hpp"

namespace driftd::check {

/// What a sink says of itself in describe.
struct SinkInfo {
  std::string id, version, title;
  std::vector<std::string> bodies;
  std::uint32_t batch_events = 1;
  std::uint64_t batch_bytes = 16u << 20;
  int concurrency = 1;
  bool has_flush = false;
};
/// Parses the document of describe. Throws RuleBroken with the member that is wrong.
SinkInfo parse_sink_info(const std::string& describe);

/// The sink, loaded into this process once and never unloaded. Throws CheckNotMade, with the id of the check that
/// explains it, if it cannot be loaded or its answers cannot be parsed. [any thread]
class SinkPlugin {
 public:
  static const SinkPlugin& load(const Subject& subject);

  driftd_sink_table table{};  ///< of full size: slots that the sink lacks return UNSUPPORTED
  // Call the sink's `describe` and `schema`. Throw RuleBroken if they do not return within kGrace.
  CallTrace describe() const;
  CallTrace schema(const std::string& what) const;
  const SinkInfo& info() const;
  const std::string& settings_schema() const;
};

}  // namespace driftd::check
