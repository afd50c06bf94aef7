// SPDX-License-Identifier: Apache-2.0
#include "k8s/api.hpp"
#include "k8s/cron_jobs.hpp"
#include "k8s/json_access.hpp"
#include "k8s/kinds.hpp"

namespace driftd::k8s {

bool cron_job_exists(sdk::Call& call, Api& api, http::Client& client, const CronJobRef& ref) {
  CronJobs& known = api.cron_jobs();
  if (known.knows(ref)) return true;
  if (ref.name.empty()) return false;
  const Resource& cron_jobs = cron_job_resource();
  const std::string path = cron_jobs.path(ref.space, ref.name);
  const http::Response response = send_request(call, api, client, path);
  if (response.status == 404 && reason_of(response.body) == "NotFound") return false;
  if (!response.ok()) throw refusal(response, "GET " + path, kJob, cron_jobs.right("get", ref.space));
  const json object = json::parse(response.body, nullptr, false);
  if (!object.is_object()) throw sdk::Failure(DRIFTD_CORRUPT, "GET " + path + ": no JSON object", kJob);
  known.note(object);
  return known.knows(ref);
}

}  // namespace driftd::k8s
