// SPDX-License-Identifier: Apache-2.0
// How fast events that wait reach JetStream: the store, the relay and the sink are real, the sink was down while the
// events were committed, and nothing is committed meanwhile. Beside it nats.c's own asynchronous publish of the same
// messages (subjects, headers, payloads, as they lie in the stream) into a stream of the same configuration on the same
// server, with a window of 4,096 messages, and with the agent's own of 256, which shows what that promise costs. All
// are durable: every message is acknowledged by a stream on disk; the agent also saves its cursor with an fsync. Turns
// alternate; judged is the median of the ratios to the wide window. Exit 1: below --least.
#include <nats/nats.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "clock.hpp"
#include "integration/nats/bus.hpp"
#include "support/agent_run.hpp"

namespace driftd::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int events = 100'000, turns = 3;
  bool views = false, alone = false;
  double least = 0.5;
};

void must(natsStatus status, const char* doing) {
  if (status != NATS_OK) throw std::runtime_error(std::string(doing) + ": " + natsStatus_GetText(status));
}

struct Figure {
  double seconds = 0, cpu = 0;
};

/// Waits until the store counts all events as acknowledged. The core thread is asked first: the store's totals cost
/// time of the store thread, which is measured.
Figure drained(test::AgentRun& agent, int events) {
  const auto begin = Clock::now();
  const double cpu = own_cpu();
  while (agent.view().delivered < events) {
    if (seconds_since(begin) > 300) throw std::runtime_error("not drained: " + agent.view().last_error);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  while (agent.totals().acked < events) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return {seconds_since(begin), own_cpu() - cpu};
}

constexpr int kWide = 4'096;  // messages under way, the library's default
constexpr int kNarrow = 256;  // as many as the agent may have sent and not saved (docs/delivery.md, cursor)

/// A connection of our own to the server, with a JetStream context and this many messages under way.
class Bare {
 public:
  Bare(const std::string& url, int under_way) {
    must(natsConnection_ConnectTo(&connection_, url.c_str()), "connect");
    jsOptions options;
    jsOptions_Init(&options);
    options.PublishAsync.MaxPending = under_way;
    options.PublishAsync.ErrHandler = [](jsCtx*, jsPubAckErr*, void* closure) { ++*static_cast<int*>(closure); };
    options.PublishAsync.ErrHandlerClosure = &errors_;
    must(natsConnection_JetStream(&stream_, connection_, &options), "JetStream");
  }
  ~Bare() {
    jsCtx_Destroy(stream_);
    natsConnection_Destroy(connection_);
  }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  /// Publishes the messages again, into the emptied stream, and waits for every acknowledgement.
  Figure publish(const std::vector<test::NatsReceived>& messages) {
    recreate();
    const auto begin = Clock::now();
    const double cpu = own_cpu();
    for (const auto& message : messages) publish(message);
    jsPubOptions wait;
    jsPubOptions_Init(&wait);
    wait.MaxWait = 120'000;
    must(js_PublishAsyncComplete(stream_, &wait), "wait for the acknowledgements");
    if (errors_ != 0) throw std::runtime_error(std::to_string(errors_) + " bare messages were refused");
    return {seconds_since(begin), own_cpu() - cpu};
  }

 private:
  void publish(const test::NatsReceived& message) {
    natsMsg* raw = nullptr;
    must(natsMsg_Create(&raw, message.subject.c_str(), nullptr, message.body.data(),
                        static_cast<int>(message.body.size())),
         "make a message");
    for (const auto& [name, value] : message.headers)
      must(natsMsgHeader_Set(raw, name.c_str(), value.c_str()), "set a header");
    must(js_PublishMsgAsync(stream_, &raw, nullptr), "publish");
    natsMsg_Destroy(raw);
  }
  /// Deletes the stream and makes it again with the configuration that it had.
  void recreate() {
    jsStreamInfo* info = nullptr;
    must(js_GetStreamInfo(&info, stream_, "DRIFT", nullptr, nullptr), "look at the stream");
    must(js_DeleteStream(stream_, "DRIFT", nullptr, nullptr), "delete the stream");
    must(js_AddStream(nullptr, stream_, info->Config, nullptr, nullptr), "make the stream");
    jsStreamInfo_Destroy(info);
  }

  natsConnection* connection_ = nullptr;
  jsCtx* stream_ = nullptr;
  int errors_ = 0;
};

void print(const char* what, const Figure& figure, int events) {
  std::printf("%-36s %7.2f s  %8.0f events/s  %6.1f us of CPU an event\n", what, figure.seconds,
              events / figure.seconds, figure.cpu * 1e6 / events);
}

test::AgentRun::MakeSink sink_to(const test::NatsServer& server, bool views) {
  sinks::NatsSettings settings;
  settings.servers = {server.url()};
  return test::nats_sink(views ? settings : test::without_views(settings));
}

/// One turn: the broker comes back, or the agent is started again; then the bare publish. Returns the ratio of rates.
double turn(const Options& options, bool restart) {
  const test::TempDir dir;
  test::NatsServer server;
  server.stop();
  auto agent = std::make_unique<test::AgentRun>(dir, sink_to(server, options.views));
  agent->commit(options.events);
  Figure ours;
  if (restart) {
    agent.reset();
    server.start();
    agent = std::make_unique<test::AgentRun>(dir, sink_to(server, options.views));
    ours = drained(*agent, options.events);
  } else {
    server.start();
    while (agent->view().delivered == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    ours = drained(*agent, options.events);
  }
  agent.reset();
  if (options.alone) {
    print(restart ? "agent, right after its restart" : "agent, when the broker is back", ours, options.events);
    return 1;
  }
  const auto messages = test::stream_contents(server.url(), "DRIFT");
  const Figure bare = Bare(server.url(), kWide).publish(messages);
  const Figure narrow = Bare(server.url(), kNarrow).publish(messages);
  print(restart ? "agent, right after its restart" : "agent, when the broker is back", ours, options.events);
  print("nats.c alone, the same messages", bare, options.events);
  print("nats.c alone, 256 of them under way", narrow, options.events);
  std::printf("%-36s %7.2f  (%zu messages)\n", "ratio of the rates", bare.seconds / ours.seconds, messages.size());
  std::fflush(stdout);
  return bare.seconds / ours.seconds;
}

int measure(const Options& options) {
  bool enough = true;
  for (const bool restart : {false, true}) {
    std::vector<double> ratios;
    for (int i = 0; i < options.turns; ++i) ratios.push_back(turn(options, restart));
    std::sort(ratios.begin(), ratios.end());
    const double median = ratios[ratios.size() / 2];
    std::printf("%s: median ratio %.2f (at least %.2f)\n\n", restart ? "after a restart" : "broker back", median,
                options.least);
    enough = enough && median >= options.least;
  }
  return enough ? 0 : 1;
}

}  // namespace
}  // namespace driftd::bench

int main(int argc, char** argv) {
  driftd::bench::Options options;
  CLI::App app("Rate at which waiting events reach JetStream, beside nats.c's asynchronous publish");
  app.add_option("--events", options.events);
  app.add_option("--turns", options.turns);
  app.add_flag("--views", options.views, "three messages an event, as by default");
  app.add_flag("--alone", options.alone, "only the agent, for a profile; nothing is judged");
  app.add_option("--least", options.least, "exit 1 when the median of the ratios is below it");
  CLI11_PARSE(app, argc, argv);
  try {
    return driftd::bench::measure(options);
  } catch (const std::exception& e) {
    std::cerr << "bench_drain: " << e.what() << '\n';
    return 2;
  }
}
