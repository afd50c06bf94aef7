// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace driftd::k8s {

/// Maps `kind|plural|namespace` to an opaque resource version. A cursor is made of these.
using ResourceVersions = std::map<std::string, std::string>;

struct Resource;
std::string version_key(const Resource& resource, const std::string& space);  ///< `kind|plural|namespace`

/// Renders a cursor; `scope` must differ whenever the watched types or filters do.
std::string render_cursor(const ResourceVersions& versions, const std::string& scope);
/// Returns nullopt if the text is not a cursor of ours or belongs to another scope.
std::optional<ResourceVersions> parse_cursor(const std::string& cursor, const std::string& scope);

/// The last complete list, shared by refresh and watch of an instance. While a watch has been unbroken since that list,
/// a refresh may answer "unchanged" without any request. Thread-safe.
class ListCache {
 public:
  using Clock = std::chrono::steady_clock;

  struct List {
    ResourceVersions versions;
    std::string cursor, scope;  ///< the cursor that the list ended with
    Clock::time_point sent;     ///< time before the first request of the list
  };
  /// Stores a complete list. Ignored if it began before the last forget(): it may lack a change that was never emitted.
  void store(List list);
  std::optional<List> last() const;  ///< empty: none, or forgotten
  void forget();                     ///< drops the list: its versions are too old, or a later change was not emitted

  /// The watch has seen every change in `scope` since `since`; nullopt: a stream is broken or has been silent for too
  /// long.
  void set_watch(std::optional<Clock::time_point> since, const std::string& scope);
  /// Returns true if the last list had another scope, because the set of served types has changed.
  bool scope_changed(const std::string& scope) const;
  /// Returns true if nothing was missed since the list that ended with this cursor.
  bool is_current(const std::string& cursor) const;

 private:
  mutable std::mutex mutex_;
  std::optional<List> list_;
  Clock::time_point forgotten_ = Clock::time_point::min();
  std::optional<Clock::time_point> since_;  ///< of set_watch()
  std::string scope_;                       ///< scope of the watch
};

}  // namespace driftd::k8s
