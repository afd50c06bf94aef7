// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace driftd::k8s {

/// `kind|plural|namespace` → resource version, opaque. What a cursor is made of.
using Positions = std::map<std::string, std::string>;

struct Resource;
std::string position_key(const Resource& resource, const std::string& space);

/// True where both are decimal numbers, as etcd's revisions are, and `version` is the larger one.
bool is_later(const std::string& version, const std::string& than);

/// The positions as a cursor; `scope` differs whenever what is watched does.
std::string render_cursor(const Positions& positions, const std::string& scope);
/// Nothing: it is none of ours, or of another scope.
std::optional<Positions> parse_cursor(const std::string& cursor, const std::string& scope);

/// What refresh and watch of one instance know of each other: a watch that has gone on since a whole list answers for
/// it, without a request. Thread-safe.
class Vouch {
 public:
  using Clock = std::chrono::steady_clock;

  struct List {
    Positions positions;
    std::string cursor, scope;
    Clock::time_point sent;  ///< before its first request
  };
  /// Not one that began before the last was forgotten: it need not hold what was not told.
  void listed(List list);
  std::optional<List> last() const;
  void forget();  ///< the last list stands no more: its positions are too old, or a change after it was not told

  /// The watch sees every change in `scope` since `since`; nothing: one of its streams is broken, or silent for too
  /// long.
  void watching(std::optional<Clock::time_point> since, const std::string& scope);
  /// The last list was of another scope: a type is served that was not, or not any more.
  bool moved_from(const std::string& scope) const;
  /// Nothing was missed since the list that ended with this cursor.
  bool stands(const std::string& cursor) const;

 private:
  mutable std::mutex mutex_;
  std::optional<List> list_;
  Clock::time_point forgotten_ = Clock::time_point::min();
  std::optional<Clock::time_point> since_;
  std::string scope_;  ///< of the watch
};

}  // namespace driftd::k8s
