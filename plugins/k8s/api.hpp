// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "k8s/cron_jobs.hpp"
#include "kube/api.hpp"

namespace driftd::k8s {

using kube::kSystemPath, kube::message_of, kube::reason_of, kube::refusal;

/// The API server of one instance, and the CronJobs that it has shown. Thread-safe.
class Api : public kube::Api {
 public:
  using kube::Api::Api;
  CronJobs& cron_jobs() { return cron_jobs_; }

 private:
  CronJobs cron_jobs_;
};

}  // namespace driftd::k8s
