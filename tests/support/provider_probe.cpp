// SPDX-License-Identifier: Apache-2.0
#include "support/provider_probe.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "driftd/ext/watch.h"
#include "support/patience.hpp"
#include "support/process.hpp"
#include "support/provider_log.hpp"

namespace driftd::test {
namespace {

using Steady = std::chrono::steady_clock;

/// A call in progress. Its address is the handle that the provider gets.
struct Call {
  Collected out;
  const std::map<std::string, std::string>* secrets = nullptr;
  Steady::time_point deadline;
  std::atomic<bool> cancelled{false};
  int cancel_pipe[2] = {-1, -1};
  std::function<bool(const Collected&)> enough;
  std::atomic<bool> has_mark{false};
  std::function<void()> before_request;  ///< runs when the provider asks for a permit

  Call(const std::map<std::string, std::string>& known_secrets, std::chrono::milliseconds time)
      : secrets(&known_secrets),
        deadline(Steady::now() + time * kPatience) {
    if (::pipe2(cancel_pipe, O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("pipe");
  }
  ~Call() {
    ::close(cancel_pipe[0]);
    ::close(cancel_pipe[1]);
  }
  void cancel() {
    cancelled = true;
    (void)!::write(cancel_pipe[1], "x", 1);
  }
  driftd_call handle() { return reinterpret_cast<driftd_call>(this); }
};

Call& call_of(driftd_call handle) { return *reinterpret_cast<Call*>(handle); }
std::string text(driftd_str s) { return std::string(sdk::view(s)); }

sdk::Record copy(const driftd_record& r) {
  sdk::Record out;
  out.kind = text(r.kind);
  out.id = text(r.id);
  out.body = text(r.body);
  out.status = text(r.status);
  out.version = text(r.version);
  out.external_name = text(r.external_name);
  out.origin = text(r.origin);
  out.backend = text(r.backend);
  out.schema_revision = std::max(r.schema_revision, std::uint32_t{1});
  out.observed_ns = r.observed_ns;
  out.tombstone = r.tombstone != 0;
  for (std::uint32_t i = 0; i < r.unread_count; ++i) {
    out.unread.push_back({text(r.unread[i].path), r.unread[i].code, text(r.unread[i].reason)});
  }
  for (std::uint64_t i = 0; i < r.sensitive_count; ++i) out.sensitive.push_back(text(r.sensitive[i]));
  for (std::uint32_t i = 0; i < r.metadata_count; ++i)
    out.metadata[text(r.metadata[i].key)] = text(r.metadata[i].value);
  return out;
}

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}
std::mutex log_mutex;
std::vector<std::string> log_lines;
void log(driftd_call, std::int32_t level, driftd_str line, const driftd_kv*, std::uint32_t) {
  const std::lock_guard lock(log_mutex);
  log_lines.push_back(std::to_string(level) + " " + text(line));
}
driftd_status metric(driftd_call, driftd_str, double) { return DRIFTD_OK; }
std::int32_t cancelled(driftd_call c) { return call_of(c).cancelled ? 1 : 0; }
std::int64_t deadline(driftd_call c) { return call_of(c).deadline.time_since_epoch().count(); }
std::int32_t cancel_fd(driftd_call c) { return call_of(c).cancel_pipe[0]; }
driftd_status emit(driftd_call c, const driftd_record* records, std::uint32_t count, std::uint32_t) {
  for (std::uint32_t i = 0; i < count; ++i) call_of(c).out.records.push_back(copy(records[i]));
  return DRIFTD_OK;
}
driftd_status mark(driftd_call c, const driftd_mark* m) {
  Call& call = call_of(c);
  ++call.out.marks;
  call.has_mark = true;
  if (m->type == DRIFTD_MARK_COMPLETE && m->backend.len > 0) {
    call.out.complete_of[{text(m->backend), text(m->kind)}] = m->count;
  } else if (m->type == DRIFTD_MARK_COMPLETE) {
    call.out.complete[text(m->kind)] = m->count;
  } else {
    call.out.cursor = text(m->cursor);
  }
  if (call.enough && call.enough(call.out)) call.cancel();
  return DRIFTD_OK;
}
void diag(driftd_call c, const driftd_diagnostic* d) {
  call_of(c).out.diagnostics.push_back({d->code, text(d->kind), text(d->id), text(d->path), text(d->text),
                                        text(d->right), d->retry_after_ms, text(d->backend)});
}
driftd_status permit(driftd_call c, driftd_str, std::uint32_t) {
  if (call_of(c).before_request) call_of(c).before_request();
  return DRIFTD_OK;
}
driftd_status secret(driftd_call c, driftd_str token, driftd_use_fn use, void* user) {
  const auto found = call_of(c).secrets->find(text(token));
  if (found == call_of(c).secrets->end()) return DRIFTD_DENIED;
  use(user, reinterpret_cast<const std::uint8_t*>(found->second.data()), found->second.size());
  return DRIFTD_OK;
}
const void* query(driftd_str, std::uint32_t) { return nullptr; }

const driftd_host_table kHost = {sizeof(driftd_host_table),
                                 DRIFTD_ABI_MINOR,
                                 now,
                                 log,
                                 metric,
                                 cancelled,
                                 deadline,
                                 cancel_fd,
                                 emit,
                                 mark,
                                 diag,
                                 permit,
                                 secret,
                                 query};

void append(void* user, driftd_str s) { *static_cast<std::string*>(user) = text(s); }

const driftd_provider_table* load(const std::string& so) {
  const std::string path = std::string(DRIFTD_BINARY_DIR) + "/" + so;
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never unloaded, as in the real host
  if (library == nullptr) throw std::runtime_error(::dlerror());
  using Entry = decltype(&driftd_provider_v1);
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, "driftd_provider_v1"));
  if (entry == nullptr) throw std::runtime_error(path + " exports no driftd_provider_v1");
  const driftd_offer offer{sizeof offer, 0, DRIFTD_ABI_MINOR, 1, sdk::str("probe")};
  driftd_accept accept{};
  accept.size = sizeof accept;
  if (entry(&kHost, &offer, &accept) != DRIFTD_OK) throw std::runtime_error(path + " refused the host");
  return accept.table;
}

}  // namespace

std::vector<std::string> take_provider_log() {
  const std::lock_guard lock(log_mutex);
  return std::exchange(log_lines, {});
}

const sdk::Record* Collected::find(const std::string& kind, const std::string& id) const {
  for (const auto& record : records) {
    if (record.kind == kind && record.id == id) return &record;
  }
  return nullptr;
}

nlohmann::json Collected::body(const std::string& kind, const std::string& id) const {
  const sdk::Record* record = find(kind, id);
  return record == nullptr ? nlohmann::json() : nlohmann::json::parse(record->body);
}

const sdk::Diagnostic* Collected::diagnostic(driftd_status code) const {
  for (const auto& d : diagnostics) {
    if (d.code == code) return &d;
  }
  return nullptr;
}

ProviderProbe::ProviderProbe(const std::string& so, const nlohmann::json& settings,
                             std::map<std::string, std::string> secrets)
    : table_(load(so)),
      secrets_(std::move(secrets)) {
  Call call(secrets_, std::chrono::seconds(5));
  const std::string json = settings.dump();
  const driftd_open_args args{sizeof args, 0, sdk::str("probe"), sdk::str(json)};
  const driftd_status status = table_->open(call.handle(), &args, &instance_);
  if (status == DRIFTD_OK) return;
  throw std::runtime_error(call.out.diagnostics.empty() ? "open failed" : call.out.diagnostics.front().text);
}

ProviderProbe::~ProviderProbe() { table_->close(instance_); }

Collected ProviderProbe::refresh(const std::string& cursor, std::chrono::milliseconds deadline) {
  Call call(secrets_, deadline);
  call.before_request = before_request_;
  driftd_refresh_args args{};
  args.size = sizeof args;
  args.flags = cursor.empty() ? DRIFTD_REFRESH_FULL : 0;
  args.cursor = sdk::str(cursor);
  driftd_refresh_result result{sizeof result, 0, 0};
  call.out.status = table_->refresh(instance_, call.handle(), &args, &result);
  call.out.unchanged = result.unchanged != 0;
  call.out.next_ms = result.next_ms;
  return call.out;
}

Collected ProviderProbe::refresh_kind(const std::string& kind) {
  Call call(secrets_, std::chrono::seconds(20));
  const driftd_str only = sdk::str(kind);
  driftd_refresh_args args{};
  args.size = sizeof args;
  args.flags = DRIFTD_REFRESH_FULL;
  args.kinds = &only;
  args.kind_count = 1;
  driftd_refresh_result result{sizeof result, 0, 0};
  call.out.status = table_->refresh(instance_, call.handle(), &args, &result);
  call.out.unchanged = result.unchanged != 0;
  return call.out;
}

Collected ProviderProbe::refresh_ok() {
  Collected out;
  if (eventually([&] { return (out = refresh()).status == DRIFTD_OK; })) return out;
  throw std::runtime_error("no refresh was OK: " +
                           (out.diagnostics.empty() ? std::to_string(out.status) : out.diagnostics[0].text));
}

Collected ProviderProbe::read(const std::vector<sdk::Identity>& ids) {
  Call call(secrets_, std::chrono::seconds(20));
  std::vector<driftd_identity> wanted;
  for (const auto& id : ids)
    wanted.push_back({sizeof(driftd_identity), 0, sdk::str(id.kind), sdk::str(id.id), sdk::str(id.backend)});
  call.out.status = table_->read(instance_, call.handle(), wanted.data(), static_cast<std::uint32_t>(wanted.size()),
                                 sizeof(driftd_identity));
  return call.out;
}

Collected ProviderProbe::health(std::chrono::milliseconds max_time) {
  std::optional<Collected> in_time;
  // A provider gives up shortly before its second is over. A report that came so late may be due to a slow machine.
  const auto is_reliable = [&] {
    const auto begin = Steady::now();
    Collected out = ask_health();
    const auto took = Steady::now() - begin;
    if (took >= max_time * kPatience) return false;
    in_time = std::move(out);
    return in_time->health.state == DRIFTD_HEALTH_UP || took < std::chrono::milliseconds(600);
  };
  (void)one_of(5, is_reliable);
  if (!in_time)
    throw std::runtime_error("health took longer than " + std::to_string(max_time.count()) + " ms, five times");
  return std::move(*in_time);
}

Collected ProviderProbe::ask_health() {
  Call call(secrets_, std::chrono::seconds(1));
  const auto take = [](void* user, const driftd_health* h) {
    static_cast<Collected*>(user)->health = {
        h->state, h->latency_us, text(h->reason), text(h->role), text(h->system_identity), text(h->server_version)};
  };
  call.out.status = table_->health(instance_, call.handle(), take, &call.out);
  return call.out;
}

namespace {

std::map<std::string, std::string> pairs(const driftd_kv* from, std::uint32_t count) {
  std::map<std::string, std::string> out;
  for (std::uint32_t i = 0; i < count; ++i) out[text(from[i].key)] = text(from[i].value);
  return out;
}

driftd_status take_backend(void* user, const driftd_discovered* d) {
  sdk::Backend& out = static_cast<Collected*>(user)->backends.emplace_back();
  out.name = text(d->name);
  out.type = text(d->type);
  out.origin = text(d->origin);
  out.external = (d->flags & DRIFTD_BACKEND_EXTERNAL) != 0;
  out.revision = text(d->revision);
  for (std::uint64_t i = 0; i < d->endpoint_count; ++i) out.endpoints.push_back(text(d->endpoints[i]));
  for (std::uint64_t i = 0; i < d->capability_count; ++i) out.capabilities.push_back(text(d->capabilities[i]));
  out.credentials = pairs(d->credentials, d->credential_count);
  out.labels = pairs(d->labels, d->label_count);
  out.metadata = pairs(d->metadata, d->metadata_count);
  return DRIFTD_OK;
}

}  // namespace

Collected ProviderProbe::discover() {
  const auto* table = static_cast<const driftd_discover_table*>(
      table_->query(sdk::str(DRIFTD_EXT_DISCOVER), DRIFTD_EXT_DISCOVER_REVISION));
  if (table == nullptr) throw std::runtime_error("the provider has no discover");
  Call call(secrets_, std::chrono::seconds(20));
  const driftd_discover_args args{sizeof args, 0, nullptr, 0};
  driftd_discover_result result{sizeof result, 0, 0};
  call.out.status = table->discover(instance_, call.handle(), &args, &take_backend, &call.out, &result);
  call.out.discovery_complete = result.complete != 0;
  call.out.next_ms = result.next_ms;
  return call.out;
}

namespace {

void take_outcome(void* user, const driftd_applied* a) {
  auto& to = *static_cast<AppliedCall*>(user);
  ++to.outcomes;
  to.outcome = {a->outcome, a->changed != 0, a->requeue_after_ms, text(a->version), text(a->text), {}, {}, {}, {}};
  for (std::uint32_t i = 0; i < a->detail_count; ++i) {
    const std::string key = text(a->details[i].key), value = text(a->details[i].value);
    if (key == DRIFTD_APPLY_COMMAND)
      to.outcome.commands.push_back(value);
    else if (key == DRIFTD_APPLY_UNDO)
      to.outcome.undo.push_back(value);
    else if (key == DRIFTD_APPLY_LEFT)
      to.outcome.left.push_back(value);
    else
      to.outcome.details[key] = value;
  }
}

}  // namespace

std::string AppliedCall::reason() const {
  if (!outcome.text.empty() || diagnostics.empty()) return outcome.text;
  return diagnostics.front().text;
}

AppliedCall ProviderProbe::apply(const sdk::Apply& request) {
  const auto* table =
      static_cast<const driftd_apply_table*>(table_->query(sdk::str(DRIFTD_EXT_APPLY), DRIFTD_EXT_APPLY_REVISION));
  if (table == nullptr) throw std::runtime_error("the provider has no apply");
  Call call(secrets_, std::chrono::seconds(20));
  call.before_request = before_request_;
  std::vector<driftd_change> changes;
  for (const auto& one : request.changes)
    changes.push_back(
        {sizeof(driftd_change), one.index, sdk::str(one.path), sdk::str(one.old_value), sdk::str(one.new_value)});
  const driftd_apply_args args{sizeof args,
                               request.dry_run ? DRIFTD_APPLY_DRY_RUN : 0,
                               sdk::str(request.id.kind),
                               sdk::str(request.id.id),
                               sdk::str(request.id.backend),
                               sdk::str(request.expected_version),
                               sdk::str(request.key),
                               changes.data(),
                               static_cast<std::uint32_t>(changes.size()),
                               sizeof(driftd_change)};
  AppliedCall out;
  out.status = table->apply(instance_, call.handle(), &args, &take_outcome, &out);
  out.diagnostics = call.out.diagnostics;
  return out;
}

Collected ProviderProbe::watch(const std::string& cursor, const std::function<bool(const Collected&)>& enough,
                               std::chrono::milliseconds max_time, const std::function<void()>& watching) {
  const auto* table =
      static_cast<const driftd_watch_table*>(table_->query(sdk::str(DRIFTD_EXT_WATCH), DRIFTD_EXT_WATCH_REVISION));
  if (table == nullptr) throw std::runtime_error("the provider has no watch");
  Call call(secrets_, max_time + std::chrono::seconds(60));
  call.enough = enough;
  std::atomic<bool> done{false};
  std::thread ender([&] {
    const auto until = Steady::now() + max_time;
    while (!done && Steady::now() < until) {
      if (watching && call.has_mark) watching();
      ::poll(nullptr, 0, 20);
    }
    call.cancel();
    table_->wake(instance_);
  });
  const driftd_watch_args args{sizeof args, 0, sdk::str(cursor)};
  call.out.status = table->watch(instance_, call.handle(), &args);
  done = true;
  ender.join();
  return call.out;
}

std::string ProviderProbe::schema(const std::string& what) const {
  std::string out;
  table_->schema(sdk::str(what), append, &out);
  return out;
}

nlohmann::json ProviderProbe::describe() const {
  std::string out;
  table_->describe(append, &out);
  return nlohmann::json::parse(out);
}

}  // namespace driftd::test
