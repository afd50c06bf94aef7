// SPDX-License-Identifier: Apache-2.0
// Matches globs; part of Glob (path.hpp). A match costs at most the length of the pattern times that of the text.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/path.hpp"

namespace driftd::core {

/// Maximum number of pattern segments that one member name with dots may match: `config.retention.ms` matches
/// config["retention.ms"].
inline constexpr std::size_t kMaxJoined = 16;

/// Returns true if `pattern` matches the whole text; `*` is any run of characters.
bool wild_match(std::string_view pattern, std::string_view text);

/// Matches path globs: a segment is `*`, `**` (any number of segments) or a pattern for one segment. It keeps the set
/// of pattern positions that are reached after each segment of the path, so that nothing is tried twice. Borrows the
/// pattern.
class SegmentMatch {
 public:
  explicit SegmentMatch(const std::vector<std::string>& glob) : glob_(glob) {}
  /// Returns true if the pattern matches the whole path.
  bool run(const std::vector<Path::Segment>& path);
  /// Returns which elements of a list at `path`, and of lists in it, the pattern matches.
  Glob::Elements elements(const std::vector<Path::Segment>& path);
  std::uint64_t steps() const { return steps_; }  ///< number of segment comparisons in the last run

 private:
  using Places = boost::container::small_vector<bool, 24>;
  bool consume(const std::vector<Path::Segment>& path);
  void mark_reached(Places& places, std::size_t place) const;
  bool advance(std::string_view segment);
  void match_joined(std::size_t place, std::string_view segment, std::size_t dots);

  const std::vector<std::string>& glob_;
  Places now_, next_;  ///< a place is the number of pattern segments that are matched
  std::uint64_t steps_ = 0;
};

}  // namespace driftd::core
