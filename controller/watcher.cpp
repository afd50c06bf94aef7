// SPDX-License-Identifier: Apache-2.0
#include "controller/watcher.hpp"

#include <exception>
#include <set>
#include <utility>

namespace driftd::controller {

Watcher::Watcher(Options options, const Settings& settings, const Clock& clock, EventPublisher* publisher, Log log)
    : options_(std::move(options)),
      watch_interval_(settings.watch_interval),
      clock_(clock),
      publisher_(publisher),
      log_(std::move(log)) {}

void Watcher::add_handler(Handler handler) { handlers_.push_back(std::move(handler)); }

bool Watcher::is_mine(const ResourceMeta& resource) {
  if (resource.kind == options_.kind) return true;
  log_(LogLevel::error, "watcher of " + options_.kind + ": expected resources of that kind, found " + resource.kind +
                            " " + render(resource.key) + "; it is skipped, correct the source");
  return false;
}

void Watcher::observe_all(const std::vector<ResourceMeta>& list) {
  const std::lock_guard one(observing_);
  std::set<Key> gone;
  for (const Key& key : keys()) gone.insert(key);
  for (const ResourceMeta& resource : list) gone.erase(resource.key);
  // Deletions first: a resource that was renamed gives back what it had before its next name asks for it.
  for (const Key& key : gone) replace(key, std::nullopt);
  for (const ResourceMeta& resource : list) {
    if (is_mine(resource)) replace(resource.key, resource);
  }
  const std::lock_guard lock(mutex_);
  listed_ = true;
}

void Watcher::observe(const ResourceMeta& resource) {
  const std::lock_guard one(observing_);
  if (is_mine(resource)) replace(resource.key, resource);
}

void Watcher::observe_deleted(const Key& key, const std::string& uid) {
  const std::lock_guard one(observing_);
  const auto known = find(key);
  if (known && (uid.empty() || known->uid == uid)) replace(key, std::nullopt);
}

/// The cache is changed first, so that a handler finds the resource in it as the change has it.
void Watcher::replace(const Key& key, const std::optional<ResourceMeta>& now) {
  const std::vector<Change> changes = changes_between(find(key), now);
  {
    const std::lock_guard lock(mutex_);
    if (now) {
      cache_.insert_or_assign(key, *now);
    } else {
      cache_.erase(key);
    }
    metrics_.changes += changes.size();
  }
  for (const Change& change : changes) {
    hand_on(change);
    if (change.type != ChangeType::metadata_updated) publish(change);
  }
}

void Watcher::hand_on(const Change& change) {
  for (const Handler& handler : handlers_) {
    std::string error;
    try {
      handler(change);
      continue;
    } catch (const std::exception& thrown) {
      error = thrown.what();
    } catch (...) {
      error = "an exception of an unknown type";
    }
    log_(LogLevel::error, "watcher of " + options_.kind + ": a handler of " + std::string(render(change.type)) + " " +
                              render(change.resource.key) + " threw: " + error + "; the others are called");
    const std::lock_guard lock(mutex_);
    ++metrics_.handler_failures;
  }
}

void Watcher::publish(const Change& change) {
  bool listed = false;
  {
    const std::lock_guard lock(mutex_);
    listed = listed_;
  }
  if (publisher_ == nullptr || (!listed && !options_.publish_first_list)) return;
  const ChangeEvent event = event_of(change, options_.instance + "-" + std::to_string(++events_), clock_.wall());
  Status done;
  try {
    done = publisher_->publish(event);
  } catch (const std::exception& thrown) {
    done = tl::unexpected(std::string("the publisher threw: ") + thrown.what());
  } catch (...) {
    done = tl::unexpected(std::string("the publisher threw an exception of an unknown type"));
  }
  if (!done) {
    log_(LogLevel::error, "watcher of " + options_.kind + ": the event " + event.type + " of " + event.subject +
                              " is lost: " + done.error());
  }
  const std::lock_guard lock(mutex_);
  ++(done ? metrics_.events_published : metrics_.publish_failures);
  metrics_.last_publish_error = done ? std::string() : done.error();
}

std::optional<ResourceMeta> Watcher::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto at = cache_.find(key);
  if (at == cache_.end()) return std::nullopt;
  return at->second;
}

std::vector<Key> Watcher::keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<Key> out;
  out.reserve(cache_.size());
  for (const auto& [key, resource] : cache_) out.push_back(key);
  return out;
}

WatcherMetrics Watcher::metrics() const {
  const std::lock_guard lock(mutex_);
  WatcherMetrics out = metrics_;
  out.is_watching = watching_;
  out.cached_resources = cache_.size();
  out.watch_interval = watch_interval_;
  out.change_handlers = handlers_.size();
  return out;
}

}  // namespace driftd::controller
