// SPDX-License-Identifier: Apache-2.0
#include "host/jail_keeper.hpp"

#include "host/jail_path_lookup.hpp"
#include "ipc/text.hpp"

namespace driftd::host {
namespace {

constexpr auto kJailPoll = std::chrono::seconds(2);

Status no_answer_of_paths() {
  return fail(Code::unavailable,
              "the file system of a path in its settings does not answer; the worker starts when it does");
}

}  // namespace

JailKeeper::JailKeeper(const HostOptions& options, const SupervisorSpec& spec)
    : options_(options),
      spec_(spec),
      schema_(spec.schema) {}

void JailKeeper::note_start() {
  ++worker_number_;
  renewal_ = renewal_ == Renewal::pending ? Renewal::running : Renewal::none;
}

void JailKeeper::note_end() { ++worker_number_; }

bool JailKeeper::note_open() { return std::exchange(paths_replaced_, false); }

void JailKeeper::renew() {
  renewal_ = Renewal::pending;
  paths_replaced_ = true;
}

Task<std::optional<JailPaths>> JailKeeper::look_up() {
  if (schema_.empty()) co_return JailPaths();
  const auto worker = worker_number_;
  JailPathLookup::Request asked{spec_.session.backend, schema_, spec_.session.settings_json, options_.own};
  if (options_.more_own) {
    const auto more = options_.more_own();
    asked.own.insert(asked.own.end(), more.begin(), more.end());
  }
  auto found = co_await JailPathLookup::find_paths(options_.path_lookup, options_.core, std::move(asked));
  if (worker_number_ != worker) co_return std::nullopt;
  co_return found;
}

Task<Status> JailKeeper::find_paths() {
  auto found = co_await look_up();
  if (!found) co_return no_answer_of_paths();
  paths_ = std::move(*found);
  co_return Status{};
}

Task<Status> JailKeeper::verify(ipc::LoadAnswer loaded) {
  described_ = ipc::one_line(loaded.jail, 1024) + (paths_.unix_sockets ? ", Unix sockets" : "");
  const bool same = loaded.settings_schema == schema_;
  schema_ = loaded.settings_schema;
  if (loaded.jail.empty() || spec_.role == WorkerRole::scan) co_return Status{};
  if (same) {
    if (!paths_.refused.empty()) co_return fail(Code::denied, paths_.refused.front());
    co_return Status{};
  }
  auto wanted = co_await look_up();
  if (!wanted) co_return no_answer_of_paths();
  if (!wanted->refused.empty()) co_return fail(Code::denied, wanted->refused.front());
  if (*wanted == paths_) {
    paths_ = std::move(*wanted);
    co_return Status{};
  }
  if (renewal_ == Renewal::running) {
    co_return fail(Code::invalid,
                   spec_.file +
                       ": its settings schema names other paths at each load; it must be the same text each "
                       "time");
  }
  renewal_ = Renewal::pending;
  co_return Status{};
}

Task<std::string> JailKeeper::find_replaced_path() {
  const JailPaths before = paths_;
  if (before.seen.empty()) co_return std::string();
  const auto now = co_await look_up();
  co_return now ? now->replaced_since(before) : std::string();
}

bool JailKeeper::is_look_due() const {
  return !looking_ && !paths_.seen.empty() && std::chrono::steady_clock::now() - looked_ >= kJailPoll;
}

Task<std::optional<std::string>> JailKeeper::look() {
  looking_ = true;
  looked_ = std::chrono::steady_clock::now();
  const JailPaths before = paths_;
  const auto now = co_await look_up();
  looking_ = false;
  if (!now || paths_.seen != before.seen || now->seen == before.seen) co_return std::nullopt;
  co_return now->replaced_since(before);
}

}  // namespace driftd::host
