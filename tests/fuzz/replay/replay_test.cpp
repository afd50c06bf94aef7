// SPDX-License-Identifier: Apache-2.0
// Replays the fuzzers' corpus and their findings: no crash, little memory, no endless loop.
#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "fuzz/foreign/foreign.hpp"
#include "support/heap/heap.hpp"
#include "support/patience.hpp"

namespace driftd::fuzz {

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

namespace {

namespace fs = std::filesystem;

std::vector<std::pair<std::string, std::string>> corpus(const Target& target) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& entry : fs::directory_iterator(std::string(DRIFTD_SOURCE_DIR "/tests/fuzz/corpus/") + target.name)) {
    std::ifstream in(entry.path(), std::ios::binary);
    out.emplace_back(entry.path().filename().string(), std::string(std::istreambuf_iterator<char>(in), {}));
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Replay : public testing::TestWithParam<Target> {};

TEST_P(Replay, EveryTextOfTheCorpusIsReadInBoundedMemory) {
  const auto& target = GetParam();
  const auto texts = corpus(target);
  ASSERT_FALSE(texts.empty()) << "no corpus for " << target.name;
  for (const auto& [name, text] : texts) {
    SCOPED_TRACE(name);
    const test::HeapPeak peak;
    target.read(text);
    EXPECT_LE(peak.bytes(), target.max_bytes) << (peak.bytes() >> 20) << " MiB";
  }
}

/// Changes, removes or repeats bytes, or takes some from another text.
std::string mutated(std::string text, const std::string& other, std::mt19937& random) {
  for (auto n = 1 + random() % 3; n > 0 && !text.empty(); --n) {
    const auto at = random() % text.size();
    switch (random() % 4) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + random() % 8);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), random() % 64));
        break;
      default:
        text.insert(at, other.substr(other.empty() ? 0 : random() % other.size(), random() % 64));
    }
  }
  return text;
}

TEST_P(Replay, TheCorpusIsReadAThousandTimesMutated) {
  const auto& target = GetParam();
  const auto texts = corpus(target);
  ASSERT_FALSE(texts.empty());
  std::mt19937 random(20261122);
  for (int i = 0; i < 1'000 / test::kPatience; ++i) {
    const auto& text = texts[random() % texts.size()].second;
    if (text.size() < 16'384) target.read(mutated(text, texts[random() % texts.size()].second, random));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Replay, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ReplayTargets, EveryFolderOfTheCorpusIsRead) {
  for (const auto& entry : fs::directory_iterator(DRIFTD_SOURCE_DIR "/tests/fuzz/corpus")) {
    const auto name = entry.path().filename().string();
    EXPECT_TRUE(name == "frames" || find_target(name) != nullptr) << name;
  }
}

}  // namespace
}  // namespace driftd::fuzz
