// SPDX-License-Identifier: Apache-2.0
// The server that answers is not nats-server. None of its answers ends the agent, and no event counts as delivered that
// it did not store.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bus.hpp"
#include "support/process.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

/// nats_impostor.py on a free loopback port; it ends with the test. It answers every request about the stream with
/// `stream_info`, and every published message with `ack`.
class Impostor {
 public:
  Impostor(const std::string& stream_info, const std::string& ack) : port_(free_port()) {
    const std::string script = dir_.write("script.json", json{{"look", stream_info}, {"ack", ack}}.dump());
    child_ = Child({"python3", DRIFTD_SOURCE_DIR "/tests/support/nats_impostor.py", std::to_string(port_), script},
                   {dir_.file("log"), {}, {}});
    if (!eventually([this] { return read_file(dir_.file("log")) == "listening\n"; }))
      throw std::runtime_error(read_file(dir_.file("log")));
  }
  sinks::NatsSettings settings() const {
    sinks::NatsSettings out;
    out.servers = {"nats://127.0.0.1:" + std::to_string(port_)};
    out.ack_wait = std::chrono::milliseconds(1'000);
    out.views = false;
    return out;
  }

 private:
  TempDir dir_;
  int port_;
  Child child_;
};

/// What a real server says of the stream that the sink wants.
json good_stream_info() {
  return {{"type", "io.nats.jetstream.api.v1.stream_info_response"},
          {"created", "2026-01-01T00:00:00Z"},
          {"config",
           {{"name", "DRIFT"},
            {"subjects", {"backend.>", "driftd.agent.>"}},
            {"retention", "limits"},
            {"storage", "file"},
            {"num_replicas", 1}}},
          {"state", {{"messages", 0}, {"first_seq", 0}, {"last_seq", 0}}}};
}
std::string without(const char* member) {
  json out = good_stream_info();
  out.erase(member);
  return out.dump();
}
std::string with(const char* member, json value) {
  json out = good_stream_info();
  out[member] = std::move(value);
  return out.dump();
}

struct Answers {
  const char* name;
  std::string stream_info, ack = R"({"stream":"DRIFT","seq":0})";
};

class Impostors : public ::testing::TestWithParam<Answers> {};

TEST_P(Impostors, EndNothingAndGetNothingSettled) {
  const Impostor impostor(GetParam().stream_info, GetParam().ack);
  RelayRunner runner(nats_sink(impostor.settings()));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return !runner.view().last_error.empty(); }, std::chrono::seconds(20)))
      << runner.view().state;
  EXPECT_EQ(runner.view().delivered, 0);
  EXPECT_LE(runner.view().last_error.size(), 1'024U);
  EXPECT_EQ(runner.view().last_error.find("onnect"), std::string::npos)
      << "the sink connected, so its error must be about the answer: " << runner.view().last_error;
}

/// The impostor repeats the credentials that it got from us, at each place around the one where a long error is cut.
TEST(ImpostorTest, WhatWeSaidToItStandsInNoError) {
  for (const std::size_t before : {0, 400, 440, 480, 500, 505, 510, 512}) {
    const std::string echo = std::string(before, '-') + " canary-token canary@password canary-token";
    const Impostor impostor(good_stream_info().dump(),
                            json{{"error", {{"code", 500}, {"err_code", 10'077}, {"description", echo}}}}.dump());
    auto settings = impostor.settings();
    settings.token = "canary-token";
    settings.servers[0].insert(std::string("nats://").size(), "u:canary@password@");
    RelayRunner runner(nats_sink(settings));
    runner.add(sample_stored(1));
    ASSERT_TRUE(eventually([&] { return runner.view().last_error.find("config.updated") != std::string::npos; }))
        << runner.view().last_error;
    EXPECT_EQ(runner.view().last_error.find("anary"), std::string::npos) << runner.view().last_error;
  }
}

const std::string kDeep = R"({"config":)" + std::string(100'000, '[');

INSTANTIATE_TEST_SUITE_P(
    Nats, Impostors,
    ::testing::Values(
        Answers{"NoConfiguration", without("config")}, Answers{"ConfigurationIsNull", with("config", nullptr)},
        Answers{"ConfigurationIsText", with("config", "x")},
        Answers{"SubjectsAreNull", with("config", {{"name", "DRIFT"}, {"subjects", {nullptr, 1}}})},
        Answers{"NoState", without("state")}, Answers{"Nothing", ""}, Answers{"NoJson", "{{{"}, Answers{"Deep", kDeep},
        Answers{"AckIsNull", good_stream_info().dump(), "null"}, Answers{"AckIsNothing", good_stream_info().dump(), ""},
        Answers{"AckIsDeep", good_stream_info().dump(), std::string(100'000, '[')},
        Answers{"AckWithoutASequence", good_stream_info().dump(), R"({"stream":"DRIFT"})"},
        Answers{
            "AckIsALongError", good_stream_info().dump(),
            json{{"error", {{"code", 500}, {"err_code", 10077}, {"description", std::string(100'000, 'x')}}}}.dump()}),
    [](const auto& answers) { return std::string(answers.param.name); });

}  // namespace
}  // namespace driftd::test
