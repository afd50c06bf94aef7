// SPDX-License-Identifier: Apache-2.0
// Providers that are well until they are asked to refresh. Which one: the ZOO_ macro.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driftd/provider.hpp"

namespace {

using namespace driftd::sdk;

#if defined(ZOO_twin)  // well, but with the id of another one
#undef ZOO_NAME
#define ZOO_NAME "segfault"
void misbehave(Call&) {}
#elif defined(ZOO_segfault)
void misbehave(Call&) {
  ::signal(SIGSEGV, SIG_DFL);  // sanitizers would answer with an exit code
  volatile int* nowhere = nullptr;
  ::raise(SIGSEGV);
  *nowhere = 1;
}
#elif defined(ZOO_abort)
void misbehave(Call&) { std::abort(); }
#elif defined(ZOO_exits)
void misbehave(Call&) { ::_exit(0); }
#elif defined(ZOO_hangs)
void misbehave(Call&) {
  for (;;) ::poll(nullptr, 0, -1);
}
#elif defined(ZOO_leaks)
void misbehave(Call& call) {
  constexpr std::size_t kChunk = 16u << 20;
  for (int i = 0; i < 24; ++i) std::memset(std::malloc(kChunk), 1, kChunk);
  pollfd wait{call.cancel_fd(), POLLIN, 0};
  while (!call.cancelled()) ::poll(&wait, 1, -1);
}
#elif defined(ZOO_garbage)
void misbehave(Call& call) {
  for (int fd = 3; fd < 32; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) (void)!::write(fd, "this is no frame, is it? not at all", 35);
  }
  pollfd wait{call.cancel_fd(), POLLIN, 0};
  while (!call.cancelled()) ::poll(&wait, 1, -1);
}
#elif defined(ZOO_shouts)
void misbehave(Call&) {
  const std::string line(99, 'x');
  for (int i = 0; i < 1'000'000; ++i) std::fprintf(stderr, "%s\n", line.c_str());
}
#endif

class Animal final : public Instance {
 public:
  RefreshResult refresh(Call& call, const Refresh&) override {
    misbehave(call);
    call.complete("thing", 0);
    return {};
  }
  void read(Call&, std::span<const Identity>) override {}
  Health health(Call&) override { return {}; }
};

std::unique_ptr<Instance> open(Call&, std::string_view, std::string_view) { return std::make_unique<Animal>(); }

const Plugin& plugin() {
  static const Plugin kPlugin{
      R"({"id":")" ZOO_NAME R"(","version":"1.0","types":[")" ZOO_NAME R"("],"kinds":["thing"],"concurrency":1})",
      {{"settings", R"({"type":"object"})"},
       {"thing",
        R"({"schema":"driftd-schema/1","kind":"thing","revision":1,"class":"config","title":"t","attributes":{}})"}},
      false,
      &open};
  return kPlugin;
}

}  // namespace

DRIFTD_PROVIDER(plugin)
