// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "driftd/sdk/call.hpp"
#include "http/client.hpp"

namespace driftd::k8s {

class Api;
struct Resource;

/// The CronJob that a Job names as its controller.
struct CronJobRef {
  std::string space, name, uid;
};
/// Returns nullopt if the object is not a Job, or does not say that a CronJob controls it.
std::optional<CronJobRef> cron_job_of(const Resource& resource, const nlohmann::json& object);

/// The CronJobs that the API server has shown. Whoever may create Jobs can name any controller, so a Job is left out
/// only if a CronJob of that namespace has the uid that the Job names. Thread-safe.
class CronJobs {
 public:
  using Clock = std::chrono::steady_clock;
  /// How long a CronJob is remembered after it was shown last: when it is deleted, its Jobs exist until the garbage
  /// collector gets to them.
  static constexpr std::chrono::minutes kRemembered{10};

  /// The API server has this CronJob now.
  void note(const nlohmann::json& cron_job, Clock::time_point now = Clock::now());
  bool knows(const CronJobRef& ref, Clock::time_point now = Clock::now()) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Clock::time_point> shown_;  ///< `namespace/uid` → when it was shown last
};

/// Returns true if the CronJob is known, or if the API server has it under its name; asks only for one that is not
/// known. Throws a Failure of the kind `job` if the server does not say; DENIED names the right.
bool cron_job_exists(sdk::Call& call, Api& api, http::Client& client, const CronJobRef& ref);

}  // namespace driftd::k8s
