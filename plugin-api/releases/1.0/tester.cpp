// SPDX-License-Identifier: Apache-2.0
// A provider of things that do not exist: the contract suite's counterpart. What it does is said in its settings.
//   count: so many things; secret: a token; block: "refresh" blocks until cancelled; deaf: and ignores the cancel
#include <poll.h>
#include <nlohmann/json.hpp>

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
    if (mode == "leaky") tell_the_secret(call);
    if (mode == "permits") {
      for (int i = 0; i < 110; ++i) call.permit("list", 1);
    }
    if (mode == "stale") return stale(call);
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
      } else if (std::stoi(id.id) < settings_.value("count", 3)) {
        emit_thing(call, std::stoi(id.id));
      } else {
        not_found(call, id);
      }
    }
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

  bool emit_thing(Call& call, int i) {
    Record r{"thing", std::to_string(i)};
    r.body =
        Json{{"size", i}, {"password", secret_}, {"padding", std::string(settings_.value("padding", 10), 'x')}}.dump();
    r.status = R"({"seen":true})";
    r.external_name = "uuid-" + r.id;
    r.unread.push_back({"owner", DRIFTD_DENIED, "may not see owners"});
    r.metadata["note"] = "n";
    return call.emit(r);
  }

  void tell_the_secret(Call& call) {
    call.log(DRIFTD_LOG_ERROR, "the password is " + secret_, {{"password", secret_}});
    call.diag({DRIFTD_DENIED, {}, {}, {}, "refused " + secret_, secret_, 0});
    Record r{"thing", "leak"};
    r.body = Json{{"open_text", "url with " + secret_}}.dump();
    r.status = Json{{"text", secret_}}.dump();
    r.metadata["leak"] = secret_;
    call.emit(r);
    throw Failure(DRIFTD_UNAUTHENTICATED, "login with " + secret_ + " failed");
  }

  RefreshResult stale(Call& call) {
    const driftd_call mine = handle_of(call);
    for (const driftd_call junk : {driftd_call{0}, driftd_call{1}, mine + (driftd_call{1} << 32), ~driftd_call{0}}) {
      if (host->mark(junk, nullptr) != DRIFTD_INVALID) throw Failure(DRIFTD_INTERNAL, "junk was taken");
    }
    const driftd_record bad{};
    if (host->emit(mine, &bad, 1, sizeof bad) != DRIFTD_INVALID)
      throw Failure(DRIFTD_INTERNAL, "an empty record was taken");
    return {};
  }

  const Json settings_;
  std::string secret_;
};

std::unique_ptr<Instance> open(Call& call, std::string_view, std::string_view settings) {
  return std::make_unique<Tester>(call, settings);
}

const Plugin& plugin() {
  static const Plugin kPlugin{
      R"({"id":"tester","version":"1.0","types":["tester","test-thing"],"kinds":["thing"],"concurrency":2,
          "extensions":[{"id":"driftd.watch","revision":1}],"metrics":[{"name":"things","unit":"1"}]})",
      {{"settings", R"({"type":"object","properties":{"secret":{"type":"string","writeOnly":true}}})"},
       {"thing", R"({"schema":"driftd-schema/1","kind":"thing","revision":1,"class":"config","title":"a thing",
                     "attributes":{"size":{"type":"int"},"password":{"type":"string","class":"credential","sensitive":true}}})"}},
      true,
      &open};
  return kPlugin;
}

}  // namespace

DRIFTD_PROVIDER(plugin)
