// SPDX-License-Identifier: Apache-2.0
// The corpus of frames that a worker may send, unchanged and mutated a million times, without a socket.
#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "fuzz/protocol/agent_input.hpp"
#include "fuzz/protocol/worker_frames.hpp"
#include "support/patience.hpp"

namespace driftd::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> corpus() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(DRIFTD_SOURCE_DIR "/tests/fuzz/corpus/frames")) {
    std::ifstream in(entry.path(), std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return out;
}

TEST(Corpus, HoldsEveryFrameOfAWorkerAsItIsEncodedToday) {
  const auto kept = corpus();
  int number = 0;
  for (const auto& frame : all_frames(1)) {
    const std::string bytes = std::string(1, '\0') + render(frame);
    const bool found = std::find(kept.begin(), kept.end(), bytes) != kept.end();
    const std::string made = DRIFTD_BINARY_DIR "/tests/fuzz/frame-" + std::to_string(number++);
    std::ofstream(made, std::ios::binary) << bytes;
    EXPECT_TRUE(found) << "copy " << made << " to tests/fuzz/corpus/frames";
  }
}

TEST(Corpus, IsHeardWithoutACrashAsItStandsAndAMillionTimesMutated) {
  const auto kept = corpus();
  ASSERT_GE(kept.size(), 12u);
  for (const auto& input : kept) feed_agent(input);
  Random random(20261121);
  for (int i = 0; i < 1'000'000 / test::kPatience; ++i) {
    const std::string& stream = kept[random() % kept.size()];
    if (random() % 4 == 0) {
      feed_agent(mutated(stream, random));
    } else {  // mutates the payload only, so that the checksum does not reject the frame
      const std::string payload = stream.substr(std::min(stream.size(), 1 + ipc::kHeaderSize));
      feed_agent(std::string{1, stream[5] >= 32 ? static_cast<char>(stream[5] - 32) : '\0'} + mutated(payload, random));
    }
  }
}

}  // namespace
}  // namespace driftd::fuzz
