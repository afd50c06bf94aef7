// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace driftd::keycloak {

/// Which ids the UUIDs of events stand for, as they were read last. A deleted resource can no longer be asked for its
/// name. Thread-safe.
class Index {
 public:
  using Ids = std::map<std::string, std::string>;  ///< UUID (or another key) → id

  /// Returns the id; empty if the UUID is not known.
  std::string find(const std::string& kind, const std::string& realm, const std::string& uuid) const {
    const std::lock_guard lock(mutex_);
    const auto ids = ids_.find({kind, realm});
    if (ids == ids_.end()) return {};
    const auto found = ids->second.find(uuid);
    return found == ids->second.end() ? std::string() : found->second;
  }
  Ids all(const std::string& kind, const std::string& realm) const {
    const std::lock_guard lock(mutex_);
    const auto ids = ids_.find({kind, realm});
    return ids == ids_.end() ? Ids() : ids->second;
  }
  /// Returns the key that stands for this id; empty if there is none.
  std::string key_of(const std::string& kind, const std::string& realm, const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto ids = ids_.find({kind, realm});
    if (ids == ids_.end()) return {};
    for (const auto& [uuid, each] : ids->second) {
      if (each == id) return uuid;
    }
    return {};
  }
  bool holds(const std::string& kind, const std::string& realm, const std::string& id) const {
    return !key_of(kind, realm, id).empty();
  }
  void put(const std::string& kind, const std::string& realm, const std::string& uuid, const std::string& id) {
    const std::lock_guard lock(mutex_);
    ids_[{kind, realm}][uuid] = id;
  }
  void erase(const std::string& kind, const std::string& realm, const std::string& uuid) {
    const std::lock_guard lock(mutex_);
    ids_[{kind, realm}].erase(uuid);
  }
  void replace(const std::string& kind, const std::string& realm, Ids ids) {
    const std::lock_guard lock(mutex_);
    ids_[{kind, realm}] = std::move(ids);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Ids> ids_;  ///< by kind and realm
};

}  // namespace driftd::keycloak
