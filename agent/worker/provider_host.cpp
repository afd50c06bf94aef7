// SPDX-License-Identifier: Apache-2.0
#include "worker/provider_host.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <cerrno>

#include "ipc/provider_info.hpp"
#include "worker/abi_input.hpp"
#include "worker/host_table.hpp"

namespace driftd::worker {
namespace {

/// Reads the deadline, which is the first member of every call. Only demote has none.
std::int64_t deadline_of(const ipc::Frame& frame) {
  constexpr std::int64_t kPureNs = 10'000'000'000;
  if (frame.type == ipc::FrameType::demote) return mono_ns() + kPureNs;
  std::int64_t deadline = 0;
  ipc::Decoder decoder(frame.payload);
  decoder(deadline);
  return deadline;
}

/// Returns true if RLIMIT_NOFILE is reached, which may be why the plugin failed.
bool no_descriptor_left() {
  const int spare = ::dup(STDERR_FILENO);
  if (spare >= 0) ::close(spare);
  return spare < 0 && errno == EMFILE;
}

}  // namespace

ProviderHost::~ProviderHost() {
  finish();
  if (library_ >= 0) ::close(library_);
}

Status ProviderHost::serve() {
  for (;;) {
    auto frame = channel_.receive();
    const bool go_on = frame && *frame && handle(std::move(**frame));
    if (go_on) continue;
    finish();
    if (!frame) return fail(std::move(frame.error()));
    return {};
  }
}

bool ProviderHost::handle(ipc::Frame frame) {
  switch (frame.type) {
    case ipc::FrameType::load:
      load(frame);
      return true;
    case ipc::FrameType::open:
      open(std::move(frame));
      return true;
    case ipc::FrameType::cancel:
      cancel(frame.call);
      return true;
    case ipc::FrameType::stop:
      return false;
    case ipc::FrameType::credit:
      if (const auto call = find(frame.call))
        call->add_credit(ipc::decode<ipc::Credit>(frame.payload).value_or(ipc::Credit{}).bytes);
      return true;
    case ipc::FrameType::permitted:
      if (const auto call = find(frame.call))
        call->permitted(ipc::decode<ipc::PermitAnswer>(frame.payload).value_or(ipc::PermitAnswer{}));
      return true;
    case ipc::FrameType::part:
      take_part(std::move(frame));
      return true;
    case ipc::FrameType::deliver:
      start(assembled(std::move(frame)));
      return true;
    default:
      start(std::move(frame));
      return true;
  }
}

void ProviderHost::load(const ipc::Frame& frame) {
  const auto asked = ipc::decode<ipc::Load>(frame.payload);
  if (!asked) return refuse(frame.call, asked.error().code, asked.error().message);
  if (library_ < 0) return refuse(frame.call, Code::conflict, "load: a plugin is loaded already");
  auto file = ipc::PluginFile::adopt(asked->file, std::exchange(library_, -1));
  if (!file) return refuse(frame.call, file.error().code, file.error().message);
  Result<std::string> jail = std::string();
  if (before_load_) jail = before_load_(*asked);
  if (!jail) return refuse(frame.call, jail.error().code, jail.error().message);
  if (!asked->in_process) process_guard_ = std::make_unique<ProcessGuard>();
  const auto library = load_library(std::move(*file), asked->in_process);
  Result<Extensions> extensions = Extensions{};
  if (library && !(*library)->sink) extensions = adopt_extensions(**library);
  if (process_guard_) process_guard_->accept_handlers();
  report_changes("load");
  if (!library) return refuse(frame.call, library.error().code, library.error().message);
  if (!extensions) return refuse(frame.call, extensions.error().code, extensions.error().message);
  ipc::LoadAnswer loaded = (*library)->loaded;
  loaded.extensions = extensions->offered;
  auto info = ipc::parse_info(loaded);
  if (!info) return refuse(frame.call, info.error().code, info.error().message);
  loaded_.library = *library;
  loaded_.extensions = std::move(*extensions);
  loaded_.info = *info;
  loaded_.metrics = ipc::declared_metrics((*library)->loaded.describe);
  call_threads_ = std::make_unique<CallThreads>(static_cast<std::size_t>((*info)->concurrency));
  loaded.jail = *jail;
  channel_.send(ipc::FrameType::result, frame.call, encode(ipc::CallResult{Code::ok, {}, encode(loaded)}));
}

void ProviderHost::open(ipc::Frame frame) {
  auto asked = ipc::decode<ipc::Open>(frame.payload);
  if (!asked) return refuse(frame.call, asked.error().code, asked.error().message);
  if (loaded_.library == nullptr || opened_)
    return refuse(frame.call, Code::conflict, "open: nothing loaded, or open already");
  loaded_.open = std::move(*asked);
  loaded_.scrubber = ipc::Scrubber::of_instance(loaded_.open.secrets, loaded_.open.settings_json);
  loaded_.disclosure = core::Disclosure(loaded_.info->free_form, loaded_.open.redact);
  loaded_.key.id = loaded_.open.key_id;
  const std::size_t bytes = std::min(loaded_.open.key.size(), loaded_.key.key.size());
  std::copy_n(loaded_.open.key.begin(), bytes, loaded_.key.key.begin());
  auto call = std::make_shared<ActiveCall>(frame.call, frame.type, loaded_.open.deadline_ns, loaded_, channel_);
  post(*call_threads_, std::move(call), {}, &ProviderHost::do_open);
}

void ProviderHost::start(ipc::Frame frame) {
  if (!opened_) return refuse(frame.call, Code::unavailable, "the instance is not open");
  auto call = std::make_shared<ActiveCall>(frame.call, frame.type, deadline_of(frame), loaded_, channel_);
  switch (frame.type) {
    case ipc::FrameType::refresh:
      return post(*call_threads_, call, std::move(frame.payload), &ProviderHost::do_refresh);
    case ipc::FrameType::read:
      return post(*call_threads_, call, std::move(frame.payload), &ProviderHost::do_read);
    case ipc::FrameType::health:
      return post(health_thread_, call, std::move(frame.payload), &ProviderHost::do_health);
    case ipc::FrameType::watch:
      return post(watch_thread_, call, std::move(frame.payload), &ProviderHost::do_watch);
    case ipc::FrameType::demote:
      return post(demote_thread_, call, std::move(frame.payload), &ProviderHost::do_demote);
    case ipc::FrameType::discover:
      return post(*call_threads_, call, std::move(frame.payload), &ProviderHost::do_discover);
    case ipc::FrameType::upgrade:
      return post(upgrade_thread_, call, std::move(frame.payload), &ProviderHost::do_upgrade);
    case ipc::FrameType::apply:
      return post(apply_thread_, call, std::move(frame.payload), &ProviderHost::do_apply);
    case ipc::FrameType::deliver:
      return post(*call_threads_, call, std::move(frame.payload), &ProviderHost::do_deliver);
    case ipc::FrameType::flush:
      return post(flush_thread_, call, std::move(frame.payload), &ProviderHost::do_flush);
    default:
      return refuse(frame.call, Code::invalid, "not a call");
  }
}

void ProviderHost::post(CallThreads& threads, std::shared_ptr<ActiveCall> call, std::string payload, Job job) {
  {
    const std::lock_guard lock(mutex_);
    calls_[call->id] = call;
  }
  threads.post([this, call, payload = std::move(payload), job] { run(call, payload, job); });
}

void ProviderHost::run(const std::shared_ptr<ActiveCall>& call, const std::string& payload, Job job) {
  call->owner = std::this_thread::get_id();
  const driftd_call handle = CallTable::instance().add(call);
  set_running_call(call.get());
  driftd_status status = DRIFTD_INTERNAL;
  std::string body;
  std::string thrown;
  try {
    status = call->cancelled() ? DRIFTD_CANCELLED : (this->*job)(*call, payload, handle, body);
  } catch (const std::exception& e) {
    thrown = fmt::format("an exception crossed the ABI: {}", e.what());
  } catch (...) {
    thrown = "an exception crossed the ABI";
  }
  set_running_call(nullptr);
  CallTable::instance().remove(handle);
  report_changes(ipc::call_name(call->type));
  if (!thrown.empty()) loaded_.misuse(fmt::format("{}: an exception crossed the ABI", ipc::call_name(call->type)));
  answer(*call, thrown.empty() ? status : DRIFTD_INTERNAL, std::move(body), thrown);
}

/// Counts what the plugin did to the process; the next answer reports it.
void ProviderHost::report_changes(std::string_view during) {
  if (process_guard_ == nullptr) return;
  for (const auto& change : process_guard_->changes())
    loaded_.misuse(loaded_.scrubber.text(fmt::format("{}: {}", during, change)));
}

void ProviderHost::answer(ActiveCall& call, driftd_status status, std::string body, const std::string& thrown) {
  const driftd_status flushed = call.flush();
  ipc::CallResult result;
  result.code = call.budget_hit() ? Code::budget : code_of(status == DRIFTD_OK ? flushed : status);
  const auto& last = call.last_diagnostic();
  std::string reason = thrown.empty() ? last.text : thrown;
  if (call.budget_hit() || call.stopped_early()) {
    result.budget_hit = call.budget_name();
    reason = fmt::format("at the budget of {} records or {} bytes a refresh", loaded_.open.max_records,
                         loaded_.open.max_bytes);
  } else if (result.code != Code::ok && no_descriptor_left()) {
    result.budget_hit = "files";
    reason += fmt::format("{}no descriptor is left (budget files)", reason.empty() ? "" : "; ");
  }
  if (result.code != Code::ok || !result.budget_hit.empty()) {
    if (reason.empty()) reason = fmt::format("the plugin answered {} and gave no reason", render(result.code));
    result.message =
        fmt::format("{}: {}", ipc::call_name(call.type), loaded_.scrubber.printable(reason, ipc::kMaxText));
    result.retry_after_ms = last.retry_after_ms;
  }
  result.body = std::move(body);
  auto misuses = loaded_.drain_misuses();
  result.misuses = misuses.count;
  result.misuse = std::move(misuses.first);
  result.rules = std::move(misuses.by_function);
  result.denied_secrets = misuses.denied_secrets;
  {
    const std::lock_guard lock(mutex_);
    calls_.erase(call.id);
  }
  channel_.send(ipc::FrameType::result, call.id, encode(result));
}

void ProviderHost::refuse(std::uint64_t call, Code code, std::string message) {
  channel_.send(ipc::FrameType::result, call, encode(ipc::CallResult{code, std::move(message)}));
}

std::shared_ptr<ActiveCall> ProviderHost::find(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : found->second;
}

void ProviderHost::cancel(std::uint64_t id) {
  const auto call = find(id);
  if (call == nullptr) return;
  call->cancel();
  if (opened_) loaded_.library->table.wake(instance_);
}

void ProviderHost::finish() {
  std::vector<std::uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, call] : calls_) ids.push_back(id);
  }
  for (const auto id : ids) cancel(id);
  if (call_threads_) call_threads_->join();
  watch_thread_.join();
  health_thread_.join();
  demote_thread_.join();
  upgrade_thread_.join();
  apply_thread_.join();
  flush_thread_.join();
  if (opened_.exchange(false)) loaded_.library->table.close(instance_);
  channel_.shut();
}

}  // namespace driftd::worker
