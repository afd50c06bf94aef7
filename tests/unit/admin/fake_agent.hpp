// SPDX-License-Identifier: Apache-2.0
// A real admin server over a temporary Unix socket and a free loopback port, in front of a Control and a Reader that
// remember what they were asked.
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "admin/server.hpp"
#include "base/digest.hpp"
#include "support/patience.hpp"
#include "support/process.hpp"

namespace driftd::test {

inline const std::string kHost = "http://localhost";

/// A keyed digest in the form of a stored body.
inline std::string digest_of_secret(char digit) {
  return R"({"$hmac":"0a0b0c0d:1:)" + std::string(64, digit) + R"("})";
}

inline core::Drift pending_drift(const std::string& id) {
  core::Drift drift;
  drift.id = id;
  drift.resource = {"acl_user", "app"};
  drift.cls = core::ChangeClass::credential;
  drift.opened_ns = 1'000'000'000'000'000'000;
  drift.changes = {{"password", core::ChangeClass::credential, digest_of_secret('a'), digest_of_secret('b'), true},
                   {"flags", core::ChangeClass::config, "\"on\"", "9223372036854775808", false}};
  return drift;
}

inline core::StoredEvent event(std::int64_t seq) {
  core::StoredEvent out;
  out.stamp = {"e-" + std::to_string(seq), seq, static_cast<std::uint64_t>(seq), 1'000'000'000};
  out.backend = "cache";
  out.what = "credentials.rotated";
  out.resource = "acl_user/app";
  return out;
}

class FakeControl final : public core::Control {
 public:
  core::AgentView view() override { return agent; }
  Task<Result<core::Drift>> decide(std::string drift_id, core::Decision decision) override {
    if (decide_fails) co_return fail(Code::not_found, "no drift " + drift_id);
    decisions.push_back(decision);
    if (drift_id == "d-gone") co_return fail(Code::not_found, "there is no open drift d-gone");
    if (drift_id == "d-stale") co_return fail(Code::conflict, "the value moved since you saw it");
    core::Drift drift = pending_drift(drift_id);
    drift.status = core::DriftStatus::approved;
    drift.actor = decision.actor;
    co_return drift;
  }
  Task<Result<core::DiscoverOutcome>> discover(std::string backend) override {
    if (backend != "cluster") co_return fail(Code::not_found, "there is no backend " + backend);
    core::DiscoverOutcome out;
    core::Discovered orders{"orders", "postgres"};
    orders.endpoints = {"orders.db.svc:5432"};
    orders.credentials = {{"password", "k8s:db/orders#password"}};
    orders.config = R"({"database":"orders"})";
    out.backends = {orders};
    out.diagnostics = {{Code::denied, {}, {}, {}, "may not see namespace b", "b|get", 0}};
    co_return out;
  }
  Task<Result<std::vector<BackendRefresh>>> refresh(std::string backend, bool full) override {
    calls.push_back("refresh " + backend + (full ? " full" : ""));
    BackendRefresh one;
    one.backend = "cache";
    one.coverage = {{"server", true, complete, 3, 0, {}}};
    co_return std::vector<BackendRefresh>{one};
  }
  Task<Result<std::vector<core::Step>>> explain(std::string backend, core::ResourceId id, std::string path) override {
    calls.push_back("explain " + backend + " " + id.kind + "|" + id.id + " " + path);
    core::Step step{"flags", "\"on\"", "", "\"on\"", "", "string", "drift", "the attribute is gone"};
    co_return std::vector<core::Step>{step};
  }
  Task<Result<std::string>> schema(std::string provider, std::string what) override {
    if (provider != "redis") co_return fail(Code::not_found, "there is no provider '" + provider + "'");
    co_return "{\"what\":\"" + what + "\"}";
  }
  Task<Result<ReloadReport>> reload() override {
    if (!reload_result) co_return fail(reload_result.error());
    co_return reloaded;
  }
  Task<Result<std::int64_t>> replay(Replay request) override {
    calls.push_back("replay " + request.sink + " " + std::to_string(request.from_seq) + " " + request.from_id);
    co_return 7;
  }
  Task<Result<core::Drift>> claim(std::string id, core::Claim claim) override {
    claims.push_back(claim);
    core::Drift out;
    out.id = id;
    out.claimed_by = claim.until_ns ? claim.actor : "";
    out.claim_until_ns = claim.until_ns;
    co_return out;
  }
  Task<Result<std::vector<core::Silence>>> silences() override { co_return silenced; }
  Task<Result<core::Silence>> add_silence(core::Silence silence, core::AuditEntry line) override {
    lines.push_back(std::move(line));
    silence.id = "s-1";
    silenced.push_back(silence);
    co_return silence;
  }
  Task<Result<core::Silence>> expire_silence(std::string id, core::AuditEntry line) override {
    lines.push_back(std::move(line));
    for (auto it = silenced.begin(); it != silenced.end(); ++it) {
      if (it->id != id) continue;
      core::Silence ended = *it;
      silenced.erase(it);
      co_return ended;
    }
    co_return fail(Code::not_found, "no silence " + id);
  }
  std::string binding(const core::Drift& drift) override { return binding_of(drift.id); }
  /// Has the form of the real one: 64 hex characters that differ with the drift.
  static std::string binding_of(const std::string& id) { return to_hex(sha256("binding of " + id)); }
  Task<Status> audit(core::AuditEntry entry) override {
    if (!audit_works || lines.size() >= most_lines) co_return fail(Code::internal, "the disk is full");
    lines.push_back(std::move(entry));
    co_return Status{};
  }
  Task<Result<std::vector<std::string>>> resume(std::string name) override {
    calls.push_back("resume " + name);
    if (name != "cache") co_return fail(Code::conflict, "nothing of '" + name + "' is parked: cache is running");
    co_return std::vector<std::string>{"cache"};
  }
  Task<Result<std::int64_t>> dead_letter(std::string sink, std::string verb, std::vector<std::int64_t> seqs) override {
    calls.push_back(verb + " " + sink + " " + std::to_string(seqs.size()));
    co_return static_cast<std::int64_t>(seqs.size());
  }

  core::AgentView agent;
  Task<Result<core::Enforcement>> enforce(std::string drift_id, std::string digest, bool dry_run,
                                          core::Asked asked) override {
    calls.push_back("enforce " + drift_id + "@" + digest + (dry_run ? " dry " : " ") + asked.actor);
    core::Enforcement out;
    out.id = "op-1";
    out.drift_id = drift_id;
    out.state = dry_run ? core::EnforcementState::planned : core::EnforcementState::done;
    out.commands = {"CONFIG SET a b"};
    co_return out;
  }
  Task<Status> lift_stop(std::string drift_id, core::Asked asked) override {
    calls.push_back("lift " + drift_id + " " + asked.actor);
    co_return Status{};
  }
  Task<Status> switch_enforcement(bool on, core::Asked asked) override {
    calls.push_back((on ? "on " : "off ") + asked.actor + ": " + asked.reason);
    co_return Status{};
  }
  core::EnforcementView enforcement() override { return enforcing; }
  core::EnforcementView enforcing;
  std::vector<core::Decision> decisions;
  std::vector<core::Claim> claims;
  std::vector<core::Silence> silenced;
  std::vector<std::string> calls;
  std::vector<core::AuditEntry> lines;
  bool audit_works = true;
  std::size_t most_lines = SIZE_MAX;
  bool decide_fails = false;
  Status reload_result;
  ReloadReport reloaded;
  bool complete = true;
};

class FakeReader final : public core::Reader {
 public:
  Task<Result<std::vector<core::ResourceRow>>> resources(std::string, std::string, int) override {
    core::ResourceRow row;
    row.backend = "cache";
    row.resource.id = {"acl_user", "app"};
    row.resource.baseline = R"({"n":9223372036854775808,"password":)" + digest_of_secret('a') + "}";
    row.resource.observed = row.resource.baseline;
    co_return std::vector<core::ResourceRow>{row};
  }
  Task<Result<std::vector<core::DriftRow>>> drifts(core::DriftFilter filter) override {
    last_filter = filter;
    std::vector<core::DriftRow> out;
    for (const auto& row : open) {
      if (row.drift.id.starts_with(filter.drift) && out.size() < static_cast<std::size_t>(filter.limit))
        out.push_back(row);
    }
    co_return out;
  }
  Task<Result<bool>> each_resource(core::DriftFilter filter, RowHandler<core::ResourceRow> take) override {
    if (large.empty()) {
      DRIFTD_CO_TRY(large, co_await resources("", "", 1));
    }
    large.resize(std::min(large.size(), static_cast<std::size_t>(filter.limit)));
    co_return !std::all_of(large.begin(), large.end(), take);
  }
  Task<Result<bool>> each_drift(core::DriftFilter filter, RowHandler<core::DriftRow> take) override {
    DRIFTD_CO_TRY(const auto rows, co_await drifts(std::move(filter)));
    co_return !std::all_of(rows.begin(), rows.end(), take);
  }
  Task<Result<std::vector<core::StoredEvent>>> events(std::int64_t after_seq, int limit) override {
    std::vector<core::StoredEvent> out;
    const std::lock_guard lock(mutex);
    for (const auto& one : stored) {
      if (one.stamp.seq > after_seq && static_cast<int>(out.size()) < limit) out.push_back(one);
    }
    ++reads;
    co_return out;
  }
  Task<Result<core::LogSlice>> log(std::int64_t after_seq, int limit) override {
    core::LogSlice out;
    DRIFTD_CO_TRY(out.events, co_await events(after_seq, limit));
    co_return out;
  }
  Task<Result<std::vector<core::Enforcement>>> enforcements(core::EnforcementFilter filter) override {
    last_operations = filter;
    co_return operations;
  }
  std::vector<core::Enforcement> operations;
  core::EnforcementFilter last_operations;
  Task<Result<std::int64_t>> first_above_incarnation(std::uint64_t) override { co_return 1; }
  Task<Result<std::vector<core::StoredEvent>>> last_events(int) override {
    const std::lock_guard lock(mutex);
    co_return stored;
  }
  Task<Result<std::vector<core::DeadLetter>>> dead_letters(std::string, int) override {
    co_return std::vector<core::DeadLetter>{{"ops", event(4), 10, "HTTP 400 from ops"}};
  }
  std::vector<core::SinkTotals> totals = {{"ops", 10, 8, 1, 1, 0}};
  Task<Result<std::vector<core::SinkTotals>>> sink_totals() override { co_return totals; }
  std::vector<core::AuditRow> last_lines;  ///< empty: two of its own
  Task<Result<std::vector<core::AuditRow>>> audit(int) override {
    if (!last_lines.empty()) co_return last_lines;
    core::AuditRow row;
    row.id = 7;
    row.at_ns = 1'000'000'000;
    row.actor = "root";
    row.caller = {0, 0, 4711, "SUDO_USER:kim"};
    row.verb = "undid ignore";
    row.subject = "d-1";
    row.backend = "cache";
    row.resource = "acl_user/app";
    row.changes = R"([{"path":"flags","old":"on","new":9223372036854775808}])";
    row.reason = "planned";
    core::AuditRow denied = row;
    denied.id = 8;
    denied.verb = "refused";
    denied.outcome = "denied: user mallory may not use this agent's API";
    co_return std::vector<core::AuditRow>{row, denied};
  }
  Task<Result<std::vector<core::AuditRow>>> audit_after(std::int64_t id, int limit) override {
    std::vector<core::AuditRow> out;
    for (const auto& line : audit_log) {
      if (line.id > id && std::ssize(out) < limit) out.push_back(line);
    }
    co_return out;
  }
  Task<Result<core::AuditProof>> verify_audit(std::optional<core::AuditLink> anchor) override {
    verified = std::move(anchor);
    co_return proof;
  }
  Task<Result<std::int64_t>> count(Count what) override {
    counted.push_back(what);
    co_return what.of == Count::Of::resources&& what.filter.id == "nope" ? 0 : total;
  }
  void append(std::int64_t seq) {
    const std::lock_guard lock(mutex);
    stored.push_back(event(seq));
  }

  core::DriftFilter last_filter;
  core::AuditProof proof;
  std::vector<core::AuditRow> audit_log;    ///< what audit_after() reads
  std::optional<core::AuditLink> verified;  ///< the anchor of the last verify_audit()
  std::vector<Count> counted;
  std::int64_t total = 0;
  std::vector<core::DriftRow> open;
  std::vector<core::ResourceRow> large;  ///< empty: one small row is listed
  std::mutex mutex;
  std::vector<core::StoredEvent> stored;
  std::atomic<int> reads = 0;
};

class FakePlugins {
 public:
  static Task<std::vector<core::SessionFactory::ScanResult>> scan() {
    auto info = std::make_shared<core::ProviderInfo>();
    info->id = "redis";
    info->version = "1.0";
    info->types = {"redis"};
    info->kinds = {"server"};
    info->describe = R"({"id":"redis","version":"1.0","extensions":[{"id":"driftd.watch","revision":1}],)"
                     R"("metrics":[{"name":"keys","unit":"1"}]})";
    info->settings_schema = R"({"required":["address"],"properties":{"address":{"type":"string","default":"a:1"},)"
                            R"("password":{"type":"string","writeOnly":true,"description":"by reference"},)"
                            R"("tls":{"type":"object","properties":{"ca":{"type":"string","format":"path"}}}}})";
    info->schema_texts = {{"server", R"({"kind":"server","class":"config","title":"a server","attributes":)"
                                     R"({"port":{"type":"int","class":"endpoint"},"pass":{"sensitive":true}}})"}};
    core::SessionFactory::PluginUser use{"cache", {}};
    use.worker.state = "parked";
    use.worker.file = "redis.so";
    use.worker.crashes = 5;
    use.worker.last_exit = "killed by signal 11 (Segmentation fault) in refresh";
    use.worker.parked_until_ns = 1'000'000'000;
    use.worker.misuses = {{"emit", 3}};
    use.worker.last_misuse = "emit: record 0 (/) has no kind (in refresh)";
    use.worker.denied_secrets = 2;
    use.worker.budget_hits = {{"rss", 1}};
    core::SessionFactory::ScanResult redis{"redis.so", info};
    redis.used_by = {use};
    co_return std::vector<core::SessionFactory::ScanResult>{redis, {"bad.so", fail(Code::invalid, "half a plugin")}};
  }
};

/// Runs the server on a thread of its own, which is the core thread, until destroyed. What the core thread uses is
/// reached through control() and reader(): curl, a process, orders nothing between the two threads.
class FakeAgent {
  FakeControl control_;
  FakeReader reader_;

 public:
  /// Synchronises with the core thread before and after use.
  template <class T>
  class Shared {
   public:
    Shared(FakeAgent& agent, T& what) : agent_(agent), what_(what) { agent_.meet(); }
    ~Shared() { agent_.meet(); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    T* operator->() const { return &what_; }

   private:
    FakeAgent& agent_;
    T& what_;
  };

  explicit FakeAgent(admin::ServerSettings settings = {}) {
    settings.socket = socket();
    if (settings.listen.empty()) settings.listen = "127.0.0.1:0";
    auto& self = control_.agent;
    self.name = "edge";
    self.version = "0.1.0";
    self.ready = true;
    core::BackendView backend;
    backend.name = backend.type = "cache";
    backend.state = "ok";
    backend.health.state = core::HealthReport::State::up;
    backend.coverage = {{"server", true, true, 3, 0, {}}};
    self.backends = {backend};
    self.sinks = {{"ops", "webhook", "circuit closed", 9, 0, 0, 1, 8, ""}};
    auto opened = admin::Server::open(io.get_executor(), settings, {control_, reader_, metrics, FakePlugins::scan});
    if (!opened) throw std::runtime_error(opened.error().message);
    server = std::move(*opened);
    server->start();
    thread = std::thread([this] { io.run(); });
  }
  ~FakeAgent() {
    stop();
    work.reset();
    io.stop();
    thread.join();
  }
  Shared<FakeControl> control() { return {*this, control_}; }
  Shared<FakeReader> reader() { return {*this, reader_}; }
  /// Returns the audit lines so far. The line about a refused caller is written after the answer.
  std::vector<core::AuditEntry> audited() {
    return asio::post(io, asio::use_future([this] { return control_.lines; })).get();
  }
  void meet() { asio::post(io, asio::use_future).get(); }
  void stop() { asio::co_spawn(io, server->stop(), asio::use_future).get(); }
  std::string socket() const { return folder.file("driftd.sock"); }
  Output curl(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {
        "curl", "-s", "-m", std::to_string(20 * kPatience), "-w", "\n%{http_code}", "--unix-socket", socket()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command);
  }
  std::string url(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(server->port()) + path; }

  TempDir folder;
  admin::PrometheusMetrics metrics{"prism"};
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::unique_ptr<admin::Server> server;
  std::thread thread;
};

}  // namespace driftd::test
