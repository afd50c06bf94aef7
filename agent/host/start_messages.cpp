// SPDX-License-Identifier: Apache-2.0
#include "host/start_messages.hpp"

namespace driftd::host {

ipc::Load make_load(const SupervisorSpec& spec, const HostOptions& options, const JailPaths& paths) {
  const bool threads = spec.session.isolation == core::SessionSpec::Isolation::in_process;
  return {spec.file, threads, paths.read, paths.unix_sockets, options.jail_kills};
}

ipc::Open make_open(const core::SessionSpec& session, Steady::time_point deadline) {
  ipc::Open open{session.sink.empty() ? session.backend : session.sink, session.settings_json, session.secrets};
  open.key_id = session.worker_key.id;
  open.key.assign(session.worker_key.key.begin(), session.worker_key.key.end());
  open.digest_seed = session.digest_seed;
  open.max_records = session.budgets.records;
  open.max_bytes = session.budgets.bytes;
  open.deadline_ns = deadline.time_since_epoch() / std::chrono::nanoseconds(1);
  open.redact = session.redact;
  return open;
}

}  // namespace driftd::host
