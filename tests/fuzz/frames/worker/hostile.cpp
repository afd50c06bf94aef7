// SPDX-License-Identifier: Apache-2.0
// A worker whose plugin has taken it over. It replaces driftd-provider-host and breaks one rule, which the instance's
// settings name: {"do":"over_credit"}. It answers load and open correctly.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>

#include <nlohmann/json.hpp>

#include "fuzz/protocol/worker_frames.hpp"
#include "worker/agent_channel.hpp"

namespace driftd::fuzz {
namespace {

using ipc::encode;
using ipc::Frame;
using ipc::FrameType;

/// Returns the agent's next frame that is a call. Exits when the agent has gone.
Frame next_call(worker::AgentChannel& link) {
  for (;;) {
    auto frame = link.receive();
    if (!frame || !*frame || (*frame)->type == FrameType::stop) std::_Exit(0);
    const auto type = (*frame)->type;
    if (type != FrameType::credit && type != FrameType::cancel && type != FrameType::permitted)
      return std::move(**frame);
  }
}

class Hostile {
 public:
  explicit Hostile(int fd) : fd_(fd), link_(fd) {}

  [[noreturn]] void run() {
    load();
    open();
    for (;;) {
      const Frame call = next_call(link_);
      const bool well = behaviour_ != "health" && (behaviour_ != "random" || random_() % 64 != 0);
      if (call.type == FrameType::health && well) {
        send(FrameType::result, call.call, answer(encode(core::HealthReport{core::HealthReport::State::up})));
      } else if (behaviour_ == "random" && call.type == FrameType::demote) {
        ++*frames_;
        send(FrameType::result, call.call, mutated(answer(encode(std::vector<core::Demotion>(2))), random_));
      } else {
        misbehave(call.call);
      }
    }
  }

 private:
  void send(FrameType type, std::uint64_t call, const std::string& payload) {
    if (!link_.send(type, call, payload)) std::_Exit(0);
  }

  void load() {
    const Frame call = next_call(link_);
    const auto asked = ipc::decode<ipc::Load>(call.payload);
    ipc::LoadAnswer reply = loaded();
    const std::string nested = R"({"id":"x","version":"1","types":["x"],"kinds":["thing"],"concurrency":)";
    if (asked->file.find("deep") != std::string::npos)
      reply.describe = nested + std::string(500'000, '[') + std::string(500'000, ']') + "}";
    const int file = ::open(asked->file.c_str(), O_RDWR | O_CLOEXEC);
    void* at = ::mmap(nullptr, sizeof *frames_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) std::_Exit(5);
    frames_ = static_cast<std::uint64_t*>(at);
    send(FrameType::result, call.call, answer(encode(reply)));
  }

  void open() {
    const Frame call = next_call(link_);
    const auto settings = nlohmann::json::parse(ipc::decode<ipc::Open>(call.payload)->settings_json);
    behaviour_ = settings.value("do", "");
    if (behaviour_.starts_with("refuses_open")) refuse(call.call);
    random_.seed(settings.value("seed", 1u) + static_cast<unsigned>(::getpid()));
    send(FrameType::result, call.call, answer());
  }

  /// Refuses open and stays, either silent or flooding.
  [[noreturn]] void refuse(std::uint64_t call) {
    ipc::CallResult reply;
    reply.code = Code::invalid;
    reply.message = "open: not today";
    send(FrameType::result, call, encode(reply));
    if (behaviour_ == "refuses_open_and_floods") {
      for (;;) send(FrameType::records, call + 1000, "x");
    }
    for (;;) ::pause();
  }

  void endless(FrameType type, std::uint64_t call, const std::string& payload) {
    for (;;) send(type, call, payload);
  }

  /// Sends frames without end but within its credit, so that only another limit can stop it.
  void within_credit(FrameType type, std::uint64_t call, const std::function<std::string(int)>& payload) {
    std::uint64_t used = 0;
    for (int i = 0;; ++i) {
      while (used >= ipc::kCallCredit) {
        auto frame = link_.receive();
        if (!frame || !*frame) std::_Exit(0);
        if ((*frame)->type == FrameType::credit) used -= ipc::decode<ipc::Credit>((*frame)->payload)->bytes;
      }
      const std::string bytes = payload(i);
      used += bytes.size() + ipc::kHeaderSize;
      send(type, call, bytes);
    }
  }

  void record(std::uint64_t call, const std::function<void(core::Observation&)>& spoil) {
    core::Observation o = observation("1");
    spoil(o);
    send(FrameType::records, call, encode(std::vector<core::Observation>{o}));
    send(FrameType::result, call, answer(encode(ipc::RefreshAnswer{})));
  }

  void at_random(std::uint64_t call);
  void result(std::uint64_t call, ipc::CallResult reply) { send(FrameType::result, call, encode(reply)); }

  void misbehave(std::uint64_t call);
  void misbehave_in_records(std::uint64_t call);
  void misbehave_in_answer(std::uint64_t call);

  const int fd_;
  worker::AgentChannel link_;
  std::string behaviour_;
  std::uint64_t* frames_ = nullptr;
  std::uint64_t frames_of_call_ = 0;
  Random random_{1};
};

void Hostile::misbehave(std::uint64_t call) {
  const std::string batch = encode(std::vector<core::Observation>(60, observation("1")));
  if (behaviour_ == "over_credit") endless(FrameType::records, call, batch);
  if (behaviour_ == "metric_flood") endless(FrameType::metric, call, encode(ipc::Gauge{"things", "1"}));
  if (behaviour_ == "unknown_call") send(FrameType::records, call + 1000, batch);
  if (behaviour_ == "after_result") {
    send(FrameType::result, call, answer(encode(ipc::RefreshAnswer{})));
    send(FrameType::records, call, batch);
  }
  if (behaviour_ == "agents_frame") send(FrameType::refresh, call, encode(ipc::RefreshCall{}));
  if (behaviour_ == "metric_name") send(FrameType::metric, call, encode(ipc::Gauge{"other", "1"}));
  if (behaviour_ == "metric_value") send(FrameType::metric, call, encode(ipc::Gauge{"things", "1; DROP"}));
  if (behaviour_ == "log_flood") endless(FrameType::log, call, encode(ipc::LogLine{1, std::string(1000, 'x')}));
  if (behaviour_ == "log_forges") {
    send(FrameType::log, call,
         encode(ipc::LogLine{1, "first\n2026-11-21T00:00:00.000Z info  admin: forged token-value"}));
    send(FrameType::result, call, answer(encode(ipc::RefreshAnswer{})));
  }
  if (behaviour_ == "permit_flood") endless(FrameType::permit, call, encode(ipc::PermitRequest{1, "b", 1}));
  if (behaviour_ == "permit_buckets") {
    for (int i = 0;; ++i) {
      send(FrameType::permit, call, encode(ipc::PermitRequest{1, "bucket-" + std::to_string(i), 100}));
      const auto answered = link_.receive();
      if (!answered || !*answered) std::_Exit(0);
    }
  }
  if (behaviour_ == "diagnostics") {
    core::Diagnostic many{Code::denied, "thing"};
    within_credit(FrameType::diagnostic, call, [&](int i) {
      many.text = std::to_string(i) + std::string(8000, 'x');
      return encode(many);
    });
  }
  if (behaviour_ == "large_log") send(FrameType::log, call, encode(ipc::LogLine{1, std::string(7u << 20, 'x')}));
  if (behaviour_ == "garbage") send(FrameType::records, call, mutated(batch, random_) + "x");
  if (behaviour_ == "random") at_random(call);
  misbehave_in_records(call);
  misbehave_in_answer(call);
}

/// Sends random frames. Most are allowed by the protocol but have unusual contents; one in 700 breaks it. The frames
/// are counted in the "plugin" file, which outlives the workers.
void Hostile::at_random(std::uint64_t call) {
  std::uint64_t used = 0;
  for (const auto frames = 1 + random_() % 2000; frames_of_call_ < frames; ++frames_of_call_) {
    while (used >= ipc::kCallCredit) {
      auto frame = link_.receive();
      if (!frame || !*frame) std::_Exit(0);
      if ((*frame)->type == FrameType::cancel) break;
      if ((*frame)->type == FrameType::credit) used -= ipc::decode<ipc::Credit>((*frame)->payload)->bytes;
    }
    const bool breaks = random_() % 700 == 0;
    const Frame frame = breaks ? any_frame(call, random_) : odd_frame(call, random_);
    used += frame.payload.size() + ipc::kHeaderSize;
    ++*frames_;
    if (breaks && random_() % 4 == 0) {
      const std::string bytes = mutated(render(frame), random_);
      if (::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) std::_Exit(0);
    } else {
      send(frame.type, frame.call, frame.payload);
    }
  }
  frames_of_call_ = 0;
  send(FrameType::result, call, all_frames(call)[8].payload);
}

void Hostile::misbehave_in_records(std::uint64_t call) {
  const auto spoil = [&](const char* behaviour, const std::function<void(core::Observation&)>& change) {
    if (behaviour_ == behaviour) record(call, change);
  };
  spoil("id_utf8", [](core::Observation& o) { o.id.id = "a\xff\xfe"; });
  spoil("id_empty", [](core::Observation& o) { o.id.id.clear(); });
  spoil("id_long", [](core::Observation& o) { o.id.id.assign(5000, 'x'); });
  spoil("kind", [](core::Observation& o) { o.id.kind = "undeclared"; });
  spoil("metadata_utf8", [](core::Observation& o) { o.metadata["\xc3("] = "v"; });
  spoil("metadata_many", [](core::Observation& o) {
    for (int i = 0; i < 5000; ++i) o.metadata[std::to_string(i)];
  });
  spoil("unread_utf8", [](core::Observation& o) { o.unread[0].path = "\xff"; });
  spoil("unread_code", [](core::Observation& o) { o.unread[0].code = static_cast<Code>(77); });
  if (behaviour_ == "no_records") endless(FrameType::records, call, encode(std::vector<core::Observation>{}));
  if (behaviour_ == "many_records")
    send(FrameType::records, call, encode(std::vector<core::Observation>(65, observation("1"))));
  if (behaviour_ == "mark_kind")
    send(FrameType::mark, call, encode(core::Mark{core::Mark::Type::complete, "undeclared", "", 0}));
  if (behaviour_ == "mark_type")
    send(FrameType::mark, call, encode(core::Mark{static_cast<core::Mark::Type>(9), "thing"}));
  if (behaviour_ == "cursor")
    send(FrameType::mark, call, encode(core::Mark{core::Mark::Type::checkpoint, "", std::string(70'000, 'c'), 0}));
  if (behaviour_ == "over_budget") {
    within_credit(FrameType::records, call,
                  [](int i) { return encode(std::vector<core::Observation>(60, observation(std::to_string(i)))); });
  }
}

void Hostile::misbehave_in_answer(std::uint64_t call) {
  if (behaviour_ == "result_garbage") send(FrameType::result, call, "no result");
  if (behaviour_ == "many_rules") {
    ipc::CallResult reply;
    for (int i = 0; i < 1000; ++i) reply.rules["rule " + std::to_string(i)] = 1;
    result(call, std::move(reply));
  }
  if (behaviour_ == "result_code") result(call, {static_cast<Code>(-5), "no code"});
  if (behaviour_ == "answer_shape") result(call, {Code::ok, {}, "not a refresh answer"});
  if (behaviour_ == "health") result(call, {Code::ok, {}, "not a report"});
  if (behaviour_ == "negative_next") result(call, {Code::ok, {}, encode(ipc::RefreshAnswer{false, -7})});
  if (behaviour_ == "endless_next") result(call, {Code::ok, {}, encode(ipc::RefreshAnswer{false, INT64_MAX})});
  if (behaviour_ == "misuse") {
    ipc::CallResult reply{Code::throttled, std::string(100'000, 'm') + "\xff", {}, INT64_MAX};
    reply.misuses = UINT64_MAX;
    reply.misuse = "broke\nit with token-value";
    result(call, reply);
  }
}

}  // namespace
}  // namespace driftd::fuzz

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  ::signal(SIGPIPE, SIG_IGN);
  driftd::fuzz::Hostile(std::atoi(argv[1])).run();
}
