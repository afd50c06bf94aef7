// SPDX-License-Identifier: Apache-2.0
// order_consumer: counts orders in Redis and goes on while the password, the endpoint or the server changes.
//
//   BACKEND_CONFIG_PATH=backends.json order_consumer nats://127.0.0.1:4222 orders-cache checkpoint.json
//
// It prints a line for each change of its connection. docs/consume.md goes through it. Built with -DORDERS_BY_AGENT and
// driftd_consumer_grpc, it asks driftd's agent for the backend and its password, and needs the file only without it:
//
//   DRIFTD_AGENT=unix:/run/driftd/grpc.sock order_consumer nats://127.0.0.1:4222 orders-cache checkpoint.json
#include <csignal>
#include <cstdio>
#include <thread>

#include "driftd/consumer/pattern_runner.hpp"
#include "redis_slot.hpp"
#ifdef ORDERS_BY_AGENT
#include <cstdlib>

#include "driftd/consumer/agent.hpp"
#endif

namespace {

namespace dc = driftd::consumer;
volatile std::sig_atomic_t stopped = 0;

/// One order: a counter in Redis.
void count_order(dc::PatternRunner& runner) {
  const auto connection = std::dynamic_pointer_cast<example::RedisSlot>(runner.slot("state_store"));
  if (!connection) return;  // there is none right now; the library is at it
  const auto done = connection->command({"INCR", "orders"});
  if (done) return;
  std::fprintf(stderr, "order not counted: %s\n", done.error().message.c_str());
  if (done.error().code == dc::Code::unavailable) runner.report_broken("state_store", connection);
}

dc::Result<std::unique_ptr<dc::PatternRunner>> make_runner(dc::RunnerSettings settings) {
  const auto factory = std::make_shared<example::RedisFactory>();
#ifdef ORDERS_BY_AGENT
  const char* agent = std::getenv("DRIFTD_AGENT");
  const auto link = dc::link_agent({.target = agent == nullptr ? "unix:/run/driftd/grpc.sock" : agent});
  if (!link) return tl::unexpected(link.error());
  dc::Resolvers resolvers;
  resolvers.set(dc::CredentialReference::Scheme::agent, dc::agent_resolver(*link));
  return dc::PatternRunner::create(std::move(settings), dc::agent_source(*link), factory, std::move(resolvers));
#else
  return dc::PatternRunner::create(std::move(settings), dc::file_source(), factory);
#endif
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: %s NATS-URL BACKEND CHECKPOINT-FILE\n", words[0]);
    return 2;
  }
  std::signal(SIGTERM, [](int) { stopped = 1; });
  std::signal(SIGINT, [](int) { stopped = 1; });

  dc::RunnerSettings settings;
  settings.pattern = "order-consumer";
  settings.slots = {{"state_store", words[2], "primary", {}}};
  settings.nats.servers = {words[1]};
  settings.checkpoint = words[3];
  settings.log = [](dc::LogLevel level, const std::string& text) {
    if (level != dc::LogLevel::debug) {
      std::printf("%s\n", text.c_str());
      std::fflush(stdout);
    }
  };

  auto runner = make_runner(std::move(settings));
  if (!runner) {
    std::fprintf(stderr, "%s\n", runner.error().message.c_str());
    return 1;
  }
  const auto started = (*runner)->start();  // bind slots, then subscribe, then process
  if (!started) {
    std::fprintf(stderr, "%s\n", started.error().message.c_str());
    return 1;
  }
  while (stopped == 0) {
    count_order(**runner);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // an order comes now and then
  }
  (*runner)->stop();
  std::printf("%s", (*runner)->metrics().c_str());
  return 0;
}
