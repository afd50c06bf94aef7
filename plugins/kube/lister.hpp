// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "kube/api.hpp"
#include "kube/resource.hpp"

namespace driftd::kube {

/// Lists objects with one in memory at a time: as a stream (WatchList) if the server offers it, else in pages. Not
/// thread-safe; `streams` is shared by the listers of one instance.
class Lister {
 public:
  /// An object as the server gave it. Parts that nest deeper than common::kMaxNesting are missing, and an object with
  /// too many values holds only its identity (kube/outline.hpp); `cut` then gives the reason.
  struct Listed {
    const nlohmann::json& object;
    std::int64_t sent_ns;  ///< when the list was requested; the same for all pages
    std::string cut;
  };
  using OnObject = std::function<void(const Listed& listed)>;

  /// All must outlive it.
  Lister(Api& api, http::Client& client, std::atomic<int>& streams) : api_(api), client_(client), streams_(streams) {}

  /// Calls `on_object` with every object of `resource` in `space` and returns the resource version of the complete
  /// list. An object may be handed out twice, or may have been deleted meanwhile (may_miss_deletions()). DENIED names
  /// the right.
  std::string list(sdk::Call& call, const Resource& resource, const std::string& space, const OnObject& on_object);
  /// Returns the current resource version, from which a watch can start.
  std::string current_version(sdk::Call& call, const Resource& resource, const std::string& space);
  /// Returns true if an object that was handed out may have been deleted before the list ended. The resource version of
  /// the list is later than that deletion, so no watch from there reports it; only another list shows it.
  bool may_miss_deletions() const { return may_miss_deletions_; }

 private:
  struct Page {
    std::string resource_version, next;  ///< of the list; token of the next page, empty at the end
  };
  /// Requests one page, whose objects go to `on_object`. Throws CURSOR_EXPIRED if its token is too old.
  Page page(sdk::Call& call, const Resource& resource, const std::string& space, const std::string& query,
            std::int64_t sent, const OnObject& on_object);
  /// Lists as a stream. Empty if the server does not support that after all; pages are used then.
  std::optional<std::string> stream(sdk::Call& call, const Resource& resource, const std::string& space,
                                    const OnObject& on_object);
  bool server_streams(sdk::Call& call);  ///< asks the server for its version once

  Api& api_;
  http::Client& client_;
  std::atomic<int>& streams_;  ///< 1: the server streams lists, 0: it does not, -1: not known yet
  bool may_miss_deletions_ = false;
};

}  // namespace driftd::kube
