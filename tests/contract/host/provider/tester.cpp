// SPDX-License-Identifier: Apache-2.0
// The provider of the contract suite. It reads no system; its settings say which resources of the kind `thing` it
// reports and how it behaves:
//   count, padding: the number of things, and how many bytes the attribute `padding` of each has
//   secret: the token of the secret that each thing contains as `password`
//   fail_open: open fails
//   steal: open asks for the secret of this token
//   mode: what a refresh does
//     "block" blocks until it is cancelled; with `deaf` it ignores that
//     "throw", "denied", "throttled" fail in that way
//     "leaky" puts the secret into every text that it sends
//     "permits" asks for 110 permits
//     "stale" uses call handles that are not valid
//     "poison" emits a record for each rule that a record can break, between two good ones; `also`: one more id
//     "source" emits two such records about another backend
//   discover: "partial", "twice", "nameless", "wordy", "crowded", "heavy", "elsewhere", "fails"; see discover()
//   wet: a dry run reports that it changed the system
// The cursors "unchanged" and "expired" make a refresh answer that. A body that contains `no_object` is upgraded to a
// list, which is not valid.
#include <poll.h>
#include <charconv>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "driftd/provider.hpp"

namespace {

using namespace driftd::sdk;
using Json = nlohmann::json;

class Tester final : public Instance {
 public:
  Tester(Call& call, std::string_view settings) : settings_(Json::parse(settings)) {
    if (settings_.value("fail_open", false)) throw Failure(DRIFTD_INVALID, "settings.fail_open is set");
    const std::string steal = settings_.value("steal", "");
    if (!steal.empty()) (void)call.secret(steal);
    secret_ = call.secret(settings_.value("secret", ""));
  }

  RefreshResult refresh(Call& call, const Refresh& request) override {
    if (request.cursor == "unchanged") return {true, 5000};
    if (request.cursor == "expired") throw Failure(DRIFTD_CURSOR_EXPIRED, "cursor of another epoch");
    const std::string mode = settings_.value("mode", "");
    if (mode == "block") return block(call), RefreshResult{};
    if (mode == "throw") throw std::runtime_error("thrown with " + secret_);
    if (mode == "denied") throw Failure(DRIFTD_DENIED, "may not list", "thing", "+thing|list");
    if (mode == "throttled") throw Failure(DRIFTD_THROTTLED, "slow down", {}, {}, 1234);
    if (mode == "leaky") leak_secret(call);
    if (mode == "permits") {
      for (int i = 0; i < 110; ++i) call.permit("list", 1);
    }
    if (mode == "stale") return use_bad_handles(call);
    if (mode == "poison") return poison(call);
    if (mode == "source") return report_other_backend(call);
    if (!request.wants("thing")) return {};
    const int count = settings_.value("count", 3);
    for (int i = 0; i < count; ++i) {
      if (!emit_thing(call, i)) return {};
      if (i % 1000 == 999) call.checkpoint(std::to_string(i));
    }
    call.complete("thing", static_cast<std::uint64_t>(count));
    host->metric(handle_of(call), str("things"), count);
    return {false, 7000};
  }

  void read(Call& call, std::span<const Identity> ids) override {
    for (const auto& id : ids) {
      if (id.id == "denied") {
        call.diag({DRIFTD_DENIED, id.kind, id.id, {}, "may not read", "+thing|get", 0});
      } else if (const int i = number_of(id.id); id.kind == "thing" && i >= 0) {
        emit_thing(call, i);
      } else {
        not_found(call, id);
      }
    }
  }

  Discovery discover(Call& call, const Discoverer& to) override {
    const std::string mode = settings_.value("discover", "");
    if (mode == "fails") throw Failure(DRIFTD_DENIED, "may not list services", {}, "services|list");
    Backend orders{.name = "orders", .type = "postgres", .version = "16.2", .config = R"({"database":"orders"})"};
    orders.endpoints = {"orders.db.svc:5432", "10.0.0.7:5432"};
    orders.capabilities = {"tls"};
    orders.credentials = {{"password", "k8s:db/orders#password"}};
    orders.labels = {{"team", "shop"}};
    orders.metadata = {{"namespace", "db"}};
    to.push(orders);
    if (mode == "twice") to.push(orders);
    if (mode == "nameless") to.push({.type = "redis"});
    if (mode == "wordy")
      to.push({.name = "wordy", .type = "redis", .metadata = {{"defined_in", "db"}, {"note", std::string(9000, 'm')}}});
    const auto push_many = [&](const std::string& space, int count, std::size_t bytes) {
      for (int i = 0; i < count; ++i) {
        to.push({.name = space + "-" + std::to_string(i),
                 .type = "redis",
                 .metadata = {{"defined_in", space}, {"note", std::string(bytes, 'm')}}});
      }
    };
    if (mode == "crowded") push_many("a-tenant", 5000, 1), push_many("prod", 3, 1);
    if (mode == "heavy") {
      push_many("a-tenant", 240, 8000);
      for (const char* each : {"b", "c", "d", "e", "f", "g", "h"}) push_many(each, 103, 8000);
      push_many("prod", 3, 1);
    }
    if (mode == "elsewhere")
      to.push({.name = std::string(9000, 'n'), .type = "redis", .metadata = {{"defined_in", "tenant"}}});
    to.push({.name = "cache", .type = "redis", .external = true, .origin = "tester-file"});
    if (mode == "partial") call.diag({DRIFTD_DENIED, {}, {}, {}, "may not see namespace b", "b|get", 0, {}});
    return {mode != "partial", 9000};
  }

  std::vector<Verdict> diff(const Identity& id, std::span<const Change> changes) override {
    std::vector<Verdict> out;
    for (const auto& change : changes) {
      if (change.path == "padding") out.push_back({change.index, DRIFTD_VERDICT_EQUIVALENT, "padding of " + id.id});
    }
    return out;
  }

  Applied apply(Call&, const Apply& request) override {
    const std::lock_guard lock(mutex_);
    const int i = number_of(request.id.id);
    if (i < 0) throw Failure(DRIFTD_NOT_FOUND, "no such thing");
    if (done_.contains(request.key)) return {.version = version_of(i), .text = "done before"};
    if (request.expected_version != version_of(i)) throw Failure(DRIFTD_CONFLICT, "it is at " + version_of(i));
    for (const auto& one : request.changes) {  // all or none: whatever cannot be set is refused before the first write
      if (one.path != "size") return {.outcome = DRIFTD_APPLY_FAILED, .text = one.path + " is fixed"};
    }
    const Change& change = request.changes[0];
    const int size = std::stoi(change.new_value);
    if (size == 98) return {.outcome = DRIFTD_APPLY_REQUEUE, .text = "busy"};
    if (size == 99) return {.outcome = DRIFTD_APPLY_REQUEUE_AFTER, .requeue_after_ms = 1500, .text = "rolling out"};
    if (request.dry_run) return {.changed = settings_.value("wet", false), .version = version_of(i)};
    const std::string mode = settings_.value("apply", "");
    if (mode == "dies") std::abort();
    if (mode == "half" || mode == "silent") {
      return {.outcome = DRIFTD_APPLY_FAILED,
              .changed = true,
              .text = "the second command failed",
              .left = mode == "half" ? std::vector<std::string>{"size"} : std::vector<std::string>{}};
    }
    if (mode == "long") return {.changed = true, .commands = {std::string((64u << 10) + 1, 'x')}};
    done_.insert(request.key);
    sizes_[i] = size;
    ++versions_[i];
    return {.changed = true,
            .version = version_of(i),
            .details = {{"statement", "SET size " + change.new_value}},
            .commands = {"SET size " + change.new_value, "COMMIT"},
            .undo = {"SET size " + change.old_value}};
  }

  Health health(Call&) override { return {DRIFTD_HEALTH_UP, 42, "", "primary", "id-1", "9.9"}; }

  void watch(Call& call, const std::string& cursor) override {
    if (cursor == "expired") throw Failure(DRIFTD_CURSOR_EXPIRED, "gone");
    emit_thing(call, 0);
    Record gone{"thing", "1"};
    gone.tombstone = true;
    call.emit(gone);
    call.bookmark("w-1");
    call.bookmark("");
    block(call);
    throw Failure(DRIFTD_CANCELLED, "cancelled");
  }

 private:
  static driftd_call handle_of(const Call& call) { return *reinterpret_cast<const driftd_call*>(&call); }

  void block(Call& call) {
    pollfd wait{call.cancel_fd(), POLLIN, 0};
    while (!call.cancelled()) ::poll(&wait, 1, -1);
    if (settings_.value("deaf", false)) {
      for (;;) ::poll(nullptr, 0, -1);
    }
    throw Failure(DRIFTD_CANCELLED, "cancelled");
  }

  /// Returns the number that is the id of a thing, or -1 if there is no such thing.
  int number_of(const std::string& id) const {
    int out = -1;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), out);
    const bool whole = error == std::errc{} && end == id.data() + id.size() && id == std::to_string(out);
    return whole && out >= 0 && out < settings_.value("count", 3) ? out : -1;
  }

  bool emit_thing(Call& call, int i) {
    Record r{"thing", std::to_string(i)};
    r.body =
        Json{{"size", size_of(i)}, {"password", secret_}, {"padding", std::string(settings_.value("padding", 10), 'x')}}
            .dump();
    r.status = R"({"seen":true})";
    r.version = locked_version_of(i);
    r.schema_revision = 2;
    r.external_name = "uuid-" + r.id;
    if (i < 3) r.unread.push_back({"owner", DRIFTD_DENIED, "may not see owners"});
    r.metadata["note"] = "n";
    return call.emit(r);
  }

  void leak_secret(Call& call) {
    call.log(DRIFTD_LOG_ERROR, "the password is " + secret_, {{"password", secret_}});
    call.diag({DRIFTD_DENIED, {}, {}, {}, "refused " + secret_, secret_, 0});
    Record r{"thing", "leak"};
    r.body = Json{{"open_text", "url with " + secret_}}.dump();
    r.status = Json{{"text", secret_}}.dump();
    r.metadata["leak"] = secret_;
    call.emit(r);
    throw Failure(DRIFTD_UNAUTHENTICATED, "login with " + secret_ + " failed");
  }

  /// Emits one record for each rule that a record can break, between two that break none.
  RefreshResult poison(Call& call) {
    std::vector<Record> all;
    const auto add = [&](const std::string& id, const std::string& body) -> Record& {
      return all.emplace_back(Record{.kind = "thing", .id = id, .body = body});
    };
    emit_thing(call, 0);
    add("long-body", R"({"size":1,"padding":")" + std::string(5u << 20, 'x') + R"("})");
    add("deep", R"({"size":)" + std::string(300, '[') + std::string(300, ']') + "}");
    add("deeper", R"({"size":)" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}");
    add("twice", R"({"size":1,"size":2})");
    add("digest", R"({"$hmac":"0a0b0c0d:1:00"})");
    add("no-json", "{nonsense");
    add("bytes", "{\"padding\":\"\xff\xfe\"}");
    add(std::string(5000, 'i') + "1", "{}");
    add(std::string(5000, 'i') + "2", "{}");
    add("\xff", "{}");
    add("\xfe", "{}");
    add("", R"({"size":1})");
    add("secrets", "{}").sensitive = std::vector<std::string>(5000, "password");
    add("blind", "{}").unread = std::vector<Unread>(5000, {"size", DRIFTD_DENIED, "no right"});
    add("status", R"({"size":7})").status = R"({"text":")" + std::string(2u << 20, 's') + R"("})";
    add("metadata", R"({"size":8})").metadata["note"] = std::string(9000, 'm');
    add("version", R"({"size":9})").version = std::string(5000, 'v');
    if (const std::string also = settings_.value("also", ""); !also.empty()) add(also, R"({"size":3})");
    for (const auto& each : all) call.emit(each);
    emit_thing(call, 2);
    call.complete("thing", all.size() + 2);
    return {};
  }

  /// Emits two registrations of the backend `orders` that break a rule.
  RefreshResult report_other_backend(Call& call) {
    const std::map<std::string, std::string> where{{"defined_in", "db"}, {"note", "n"}};
    call.emit(Record{
        .kind = "registration", .id = "deep", .body = std::string(300, '['), .backend = "orders", .metadata = where});
    Record wordy{.kind = "registration", .id = "wordy", .body = "{}", .backend = "orders", .metadata = where};
    wordy.metadata["note"] = std::string(9000, 'm');
    call.emit(wordy);
    call.complete("thing", 0);
    return {};
  }

  /// Calls the host with handles that are not those of this call, and emits one record without an id.
  RefreshResult use_bad_handles(Call& call) {
    const driftd_call mine = handle_of(call);
    for (const driftd_call junk : {driftd_call{0}, driftd_call{1}, mine + (driftd_call{1} << 32), ~driftd_call{0}}) {
      if (host->mark(junk, nullptr) != DRIFTD_INVALID) throw Failure(DRIFTD_INTERNAL, "junk was taken");
    }
    const driftd_record bad{};
    if (host->emit(mine, &bad, 1, sizeof bad) != DRIFTD_INVALID)
      throw Failure(DRIFTD_INTERNAL, "an empty record was taken");
    return {};
  }

  std::string version_of(int i) const {
    const auto found = versions_.find(i);
    return "v" + std::to_string(found == versions_.end() ? 1 : 1 + found->second);
  }
  std::string locked_version_of(int i) {
    const std::lock_guard lock(mutex_);
    return version_of(i);
  }
  int size_of(int i) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(i);
    return found == sizes_.end() ? i : found->second;
  }

  const Json settings_;
  std::string secret_;
  std::mutex mutex_;  // guards the three members below, which apply changes
  std::map<int, int> sizes_, versions_;
  std::set<std::string> done_;  // idempotency keys of apply
};

std::unique_ptr<Instance> open(Call& call, std::string_view, std::string_view settings) {
  return std::make_unique<Tester>(call, settings);
}

/// Upgrades a body of revision 1, in which `size` was named `length`.
std::string upgrade(std::string_view kind, std::uint32_t from, std::string_view body) {
  if (kind != "thing" || from != 1) throw Failure(DRIFTD_UNSUPPORTED, "unknown revision");
  Json old = Json::parse(body);
  if (old.contains("no_object")) return "[]";
  if (!old.contains("length")) throw Failure(DRIFTD_INVALID, "expected `length`");
  old["size"] = old["length"];
  old.erase("length");
  return old.dump();
}

const Plugin& plugin() {
  static const Plugin kPlugin{
      R"({"id":"tester","version":"1.0","types":["tester","test-thing"],"kinds":["thing"],"concurrency":2,
          "diff":true,"extensions":[{"id":"driftd.watch","revision":1},{"id":"driftd.discover","revision":1},
          {"id":"driftd.upgrade","revision":1},{"id":"driftd.apply","revision":1}],"metrics":[{"name":"things","unit":"1"}]})",
      {{"settings",
        R"({"type":"object","properties":{"secret":{"type":"string","writeOnly":true},"count":{"type":"integer"}}})"},
       {"thing", R"({"schema":"driftd-schema/1","kind":"thing","revision":2,"class":"config","title":"a thing",
                     "attributes":{"size":{"type":"int"},"password":{"type":"string","class":"credential","sensitive":true}}})"}},
      true,
      &open,
      true,
      true,
      true,
      &upgrade};
  return kPlugin;
}

}  // namespace

DRIFTD_PROVIDER(plugin)
