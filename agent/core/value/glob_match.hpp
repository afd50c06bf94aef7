// SPDX-License-Identifier: Apache-2.0
// The matching of globs; part of Glob (path.hpp). No pattern costs more than its length times that of the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/path.hpp"

namespace driftd::core {

/// Segments of a pattern that one member name with dots may stand for: `config.retention.ms` is config["retention.ms"].
inline constexpr std::size_t kMaxJoined = 16;

/// Returns true if `pattern` covers the whole text; `*` is any run of characters.
bool wild_match(std::string_view pattern, std::string_view text);

/// Path globs: a segment is `*`, `**` (any number of segments) or a pattern for one segment. It keeps which places of
/// the pattern are reached after each segment of the path, so that nothing is tried twice. Borrows the pattern.
class SegmentMatch {
 public:
  explicit SegmentMatch(const std::vector<std::string>& glob) : glob_(glob) {}
  bool run(const std::vector<Path::Segment>& path);
  std::uint64_t steps() const { return steps_; }  ///< comparisons of one segment in the last run

 private:
  void reach(std::vector<bool>& places, std::size_t place) const;
  bool advance(std::string_view segment);
  void joined(std::size_t place, std::string_view segment, std::size_t dots);

  const std::vector<std::string>& glob_;
  std::vector<bool> now_, next_;  ///< a place is the number of segments of the pattern that are done
  std::uint64_t steps_ = 0;
};

}  // namespace driftd::core
