// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "controller/change.hpp"
#include "controller/clock.hpp"
#include "controller/cloud_event.hpp"
#include "controller/metrics.hpp"
#include "controller/settings.hpp"

namespace driftd::controller {

/// Remembers what was last observed of each resource of one kind, tells handlers what changed, then publishes it. A
/// source gives it whole lists, single observations of a watch, or both. Any thread; observations wait for each other,
/// and a handler must not observe.
///
/// A change is handed on once. A handler that throws, or an event that cannot be published, is counted and logged and
/// concerns nothing else: controllers get over it by their resync, but that event is lost. After a restart, the first
/// list is CREATED for everything, as in the RFC, unless `publish_first_list` is off.
class Watcher {
 public:
  using Handler = std::function<void(const Change&)>;
  struct Options {
    std::string kind;
    std::string instance;            ///< of this process, for the ids of events: `<instance>-<number>`
    bool publish_first_list = true;  ///< if off, nothing is published before the first complete list
  };

  /// `publisher` may be null: nothing is published.
  Watcher(Options options, const Settings& settings, const Clock& clock, EventPublisher* publisher, Log log);

  void add_handler(Handler handler);  ///< before the first observation
  /// A complete list: what is known and not in it was deleted.
  void observe_all(const std::vector<ResourceMeta>& list);
  void observe(const ResourceMeta& resource);
  /// A tombstone. With a uid that is not the known one it is late and means nothing; empty: whatever is known.
  void observe_deleted(const Key& key, const std::string& uid = {});
  void set_watching(bool watching) { watching_ = watching; }

  std::optional<ResourceMeta> find(const Key& key) const;
  std::vector<Key> keys() const;
  WatcherMetrics metrics() const;

 private:
  void replace(const Key& key, const std::optional<ResourceMeta>& now);
  void hand_on(const Change& change);
  void publish(const Change& change);
  bool is_mine(const ResourceMeta& resource);

  const Options options_;
  const Duration watch_interval_;
  const Clock& clock_;
  EventPublisher* const publisher_;
  const Log log_;
  std::vector<Handler> handlers_;
  std::mutex observing_;      ///< one observation at a time; held while handlers run
  mutable std::mutex mutex_;  ///< of what follows
  std::map<Key, ResourceMeta> cache_;
  bool listed_ = false;
  WatcherMetrics metrics_;
  std::atomic<bool> watching_ = false;
  std::uint64_t events_ = 0;
};

}  // namespace driftd::controller
