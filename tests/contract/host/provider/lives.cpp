// SPDX-License-Identifier: Apache-2.0
// A provider in several versions, for tests that replace its file while it runs, and with modes that exceed a budget.
// The build defines LIVES, the version: 1 and 2 are good, 3 aborts in describe, 4 refuses every open, 5 never returns
// from describe, 6 aborts in each refresh, 7 returns from a refresh only when it is cancelled.
// settings.mode says what a refresh does:
//   "spin" uses processor time without end, "spin_beside" does so on a thread of its own and returns
//   "wait" waits for 1.5 s before it answers, "hold" waits until it is cancelled
//   "steal" asks for a secret of another instance
//   "files" opens descriptors until none is left
//   "gauges" sends a metric 40,000 times
//   "abort" aborts
// settings.pid: if true, each record contains the worker's process id.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "driftd/provider.hpp"

namespace {

using namespace driftd::sdk;
using Json = nlohmann::json;

#if LIVES == 1
#define LIVES_VERSION "1.0"
#define LIVES_KINDS R"(["one"])"
#else
#define LIVES_VERSION "2.0"
#define LIVES_KINDS R"(["one","two"])"
#endif
constexpr bool kBreaksInDescribe = LIVES == 3, kBreaksInOpen = LIVES == 4, kHangsInDescribe = LIVES == 5;
constexpr bool kBreaksInRefresh = LIVES == 6, kHangsInRefresh = LIVES == 7;

class Lives final : public Instance {
 public:
  explicit Lives(std::string_view settings) : settings_(Json::parse(settings)) {
    if (kBreaksInOpen) throw Failure(DRIFTD_INVALID, "this version opens for nobody");
  }

  RefreshResult refresh(Call& call, const Refresh&) override {
    const std::string mode = settings_.value("mode", "");
    if (mode == "spin") spin();
    if (mode == "spin_beside") std::thread(&Lives::spin).detach();
    if (mode == "wait") wait(call);
    if (mode == "hold" || kHangsInRefresh) hold(call);
    if (kBreaksInRefresh) std::abort();
    if (mode == "steal") (void)call.secret("token-of-another");
    if (mode == "files") take_files();
    if (mode == "abort") std::abort();
    for (int i = 0; mode == "gauges" && i < 40'000; ++i) call.metric("lives", i);
    for (const auto& kind : Json::parse(LIVES_KINDS)) {
      Record r{kind.get<std::string>(), "1"};
      r.body = Json{{"version", LIVES_VERSION}, {"pid", settings_.value("pid", false) ? ::getpid() : 0}}.dump();
      call.emit(r);
      call.complete(r.kind, 1);
    }
    return {};
  }
  void read(Call& call, std::span<const Identity> ids) override {
    for (const auto& id : ids) not_found(call, id);
  }
  Health health(Call&) override { return {DRIFTD_HEALTH_UP, 1, "", "", "lives", LIVES_VERSION}; }
  void watch(Call& call, const std::string&) override {
    call.bookmark(LIVES_VERSION);
    hold(call);
  }

 private:
  [[noreturn]] static void spin() {
    for (volatile int busy = 0;;) (void)busy;
  }
  static bool wait_for_cancel(Call& call, int milliseconds) {
    pollfd cancel{call.cancel_fd(), POLLIN, 0};
    return ::poll(&cancel, 1, milliseconds) > 0;
  }
  static void wait(Call& call) {
    if (wait_for_cancel(call, 1500)) throw Failure(DRIFTD_CANCELLED, "cancelled");
  }
  [[noreturn]] static void hold(Call& call) {
    wait_for_cancel(call, -1);
    throw Failure(DRIFTD_CANCELLED, "cancelled");
  }
  static void take_files() {
    while (::dup(2) >= 0) {
    }
    throw Failure(DRIFTD_UNAVAILABLE, "cannot connect");
  }

  const Json settings_;
};

std::unique_ptr<Instance> open(Call&, std::string_view, std::string_view settings) {
  return std::make_unique<Lives>(settings);
}

std::string schema_of(const std::string& kind) {
  return R"({"schema":"driftd-schema/1","kind":")" + kind +
         R"(","revision":1,"class":"config","title":"one","attributes":{"version":{"type":"string"}}})";
}

const Plugin& plugin() {
  if (kBreaksInDescribe) std::abort();
  while (kHangsInDescribe) ::pause();
  static const Plugin kPlugin{
      R"({"id":"lives","version":")" LIVES_VERSION R"(","types":["lives"],"kinds":)" LIVES_KINDS
      R"(,"concurrency":2,"metrics":[{"name":"lives"}],"extensions":[{"id":"driftd.watch","revision":1}]})",
      {{"settings", R"({"type":"object","properties":{"mode":{"type":"string"},)"
                    R"("pid":{"type":"boolean"}}})"},
       {"one", schema_of("one")},
       {"two", schema_of("two")}},
      true,
      &open};
  return kPlugin;
}

}  // namespace

DRIFTD_PROVIDER(plugin)
