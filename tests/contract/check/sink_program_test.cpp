// SPDX-License-Identifier: Apache-2.0
// The command line of driftd-check for sinks: how it tells them from providers, and what their settings may name.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/process.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kSink = DRIFTD_BINARY_DIR "/tests/checked_sinks/sound.so";
const std::string kProvider = DRIFTD_BINARY_DIR "/tests/faulty_providers/sound.so";

Output check_sink(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), DRIFTD_BINARY_DIR "/bin/driftd-check");
  return run(arguments, {}, std::chrono::minutes(4));
}

TEST(DriftdCheckSink, IsRecognisedByItsSymbol) {
  EXPECT_EQ(check_sink({kSink, "--only", "binary.entry"}).code, 0);
  const Output done = check_sink({kSink, "--only", "verdicts.works"});
  EXPECT_EQ(done.code, 3) << done.out << done.err;  // it needs settings
  EXPECT_THAT(done.out, HasSubstr("needs --settings FILE: `address` is required"));
  EXPECT_EQ(check_sink({kProvider, "--only", "verdicts.works"}).code, 2);  // providers have no such check
}

TEST(DriftdCheckSink, SinkInsistsOnTheSymbol) {
  const Output done = check_sink({kProvider, "--sink", "--only", "binary.entry"});
  EXPECT_EQ(done.code, 1) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("expected the exported symbol driftd_sink_v1, found driftd_provider_v1"));
}

TEST(DriftdCheckSink, AnswerIsForSinksAndItsEscapesAreKnown) {
  const Output provider = check_sink({kProvider, "--answer", "ok", "--only", "binary.entry"});
  EXPECT_EQ(provider.code, 2);
  EXPECT_THAT(provider.err, HasSubstr("--answer: expected a sink, found a provider"));
  const Output wrong = check_sink({kSink, "--answer", R"(ok\x)", "--only", "binary.entry"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr(R"(after a backslash, found `x`)"));
}

TEST(DriftdCheckSink, WithoutAPlaceholderWhatArrivesIsNotJudged) {
  const TempDir folder;
  const std::string settings = folder.write("settings.yaml", "address: 127.0.0.1:1\n");
  const Output done = check_sink({kSink, "--settings", settings, "--only", "verdicts.arrives"});
  EXPECT_EQ(done.code, 3) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("${unix} or ${unixgram} where the path of its Unix socket does"));
}

TEST(DriftdCheckSink, WithoutAnAnswerASinkThatWaitsForOneDeliversNothing) {
  const TempDir folder;
  const std::string settings = folder.write("settings.yaml", "address: 127.0.0.1:${tcp}\n");
  const Output done =
      check_sink({kSink, "--settings", settings, "--only", "verdicts.works", "--only", "verdicts.answered"});
  EXPECT_EQ(done.code, 1) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("one event to a receiver that takes everything: expected delivered, found"));
  EXPECT_THAT(done.out, HasSubstr("no --answer was given"));
}

// The receiver at the Unix socket of the wrong type takes nothing, and the folder of the sockets is gone afterwards.
TEST(DriftdCheckSink, AUnixSocketIsAStreamOrADatagramSocketAsItsPlaceholderSays) {
  const TempDir folder;
  const TempDir sockets;
  ::setenv("TMPDIR", sockets.path().c_str(), 1);
  const auto result_over = [&](const std::string& placeholder) {
    const std::string settings = folder.write("settings.yaml", "socket: ${" + placeholder + "}\n");
    return run({DRIFTD_BINARY_DIR "/bin/driftd-check", DRIFTD_LINES_SINK, "--settings", settings, "--answer", R"(ok\n)",
                "--only", "verdicts.works"},
               {}, std::chrono::minutes(4));
  };
  const Output stream = result_over("unix");
  EXPECT_EQ(stream.code, 0) << stream.out << stream.err;
  const Output datagram = result_over("unixgram");
  EXPECT_EQ(datagram.code, 1) << datagram.out << datagram.err;
  EXPECT_THAT(datagram.out, HasSubstr("one event to a receiver that takes everything: expected delivered, found"));
  EXPECT_TRUE(std::filesystem::is_empty(sockets.path()));
  ::unsetenv("TMPDIR");
}

TEST(DriftdCheckSink, TheReportsAreThoseOfProviders) {
  const json report = json::parse(check_sink({kSink, "--only", "binary", "--json"}).out, nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["driftd_check"], 1);
  EXPECT_EQ(report["exit"], 0);
  EXPECT_EQ(report["sums"]["passed"], report["checks"].size());
  EXPECT_THAT(check_sink({kSink, "--only", "binary", "--junit"}).out,
              HasSubstr("<testcase classname=\"binary\" name=\"one_symbol\""));
}

}  // namespace
}  // namespace driftd::test
