// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace driftd::k8s {

/// `kind|plural|namespace` → resource version, opaque. What a cursor is made of.
using ResourceVersions = std::map<std::string, std::string>;

struct Resource;
std::string version_key(const Resource& resource, const std::string& space);

/// True where both are decimal numbers, as etcd's revisions are, and `version` is the larger one.
bool is_later(const std::string& version, const std::string& than);

/// The versions as a cursor; `scope` differs whenever what is watched does.
std::string render_cursor(const ResourceVersions& versions, const std::string& scope);
/// Nothing: it is none of ours, or of another scope.
std::optional<ResourceVersions> parse_cursor(const std::string& cursor, const std::string& scope);

/// What refresh and watch of one instance know of each other: a watch that has gone on since a whole list answers for
/// it, without a request. Thread-safe.
class ListCache {
 public:
  using Clock = std::chrono::steady_clock;

  struct List {
    ResourceVersions versions;
    std::string cursor, scope;
    Clock::time_point sent;  ///< before its first request
  };
  /// Not one that began before the last was forgotten: it need not hold what was not told.
  void store(List list);
  std::optional<List> last() const;
  void forget();  ///< the last list stands no more: its versions are too old, or a change after it was not told

  /// The watch sees every change in `scope` since `since`; nothing: one of its streams is broken, or silent for too
  /// long.
  void set_watch(std::optional<Clock::time_point> since, const std::string& scope);
  /// The last list was of another scope: a type is served that was not, or not any more.
  bool scope_changed(const std::string& scope) const;
  /// Nothing was missed since the list that ended with this cursor.
  bool is_current(const std::string& cursor) const;

 private:
  mutable std::mutex mutex_;
  std::optional<List> list_;
  Clock::time_point forgotten_ = Clock::time_point::min();
  std::optional<Clock::time_point> since_;
  std::string scope_;  ///< of the watch
};

}  // namespace driftd::k8s
