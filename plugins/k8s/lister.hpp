// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "k8s/api.hpp"

namespace driftd::k8s {

/// Lists objects, one in memory at a time: as a stream (WatchList) where the server has that, else in pages. Not
/// thread-safe; `streams` is shared by those of one instance.
class Lister {
 public:
  /// An object as the server gave it, but without what nests deeper than common::kMaxNesting, or only what says which
  /// one it is (k8s/outline.hpp); then `cut` says why.
  struct Listed {
    const nlohmann::json& object;
    std::int64_t sent_ns;  ///< when the list was asked for; of all pages the same
    std::string cut;
  };
  using OnObject = std::function<void(const Listed& listed)>;

  Lister(Api& api, const Settings& settings, http::Client& client, std::atomic<int>& streams)
      : api_(api),
        settings_(settings),
        client_(client),
        streams_(streams) {}

  /// Hands out every object of `resource` in `space` and returns the resource version of the whole list. When it
  /// returns the list was whole; an object may have been handed out twice, or be gone (may_miss_deletions()). DENIED
  /// names the right.
  std::string list(sdk::Call& call, const Resource& resource, const std::string& space, const OnObject& on_object);
  /// The resource version of now, from which a watch can start.
  std::string current_version(sdk::Call& call, const Resource& resource, const std::string& space);
  /// What a list has handed out was perhaps deleted before its end, and its position is behind that deletion: no watch
  /// from there tells of it, only another list.
  bool may_miss_deletions() const { return may_miss_deletions_; }

 private:
  struct Page {
    std::string resource_version, next;
  };
  Page page(sdk::Call& call, const Resource& resource, const std::string& space, const std::string& query,
            std::int64_t sent, const OnObject& on_object);
  std::optional<std::string> stream(sdk::Call& call, const Resource& resource, const std::string& space,
                                    const OnObject& on_object);
  bool server_streams(sdk::Call& call);

  Api& api_;
  const Settings& settings_;
  http::Client& client_;
  std::atomic<int>& streams_;  ///< 1: the server streams lists, 0: not, -1: not known yet
  bool may_miss_deletions_ = false;
};

/// `?limit=500&labelSelector=…`, with what the resource selects.
std::string query_of(const Resource& resource, const std::string& first);

}  // namespace driftd::k8s
