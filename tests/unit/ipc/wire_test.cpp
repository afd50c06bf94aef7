// SPDX-License-Identifier: Apache-2.0
#include "ipc/wire.hpp"

#include <gtest/gtest.h>
#include <random>

#include "ipc/messages.hpp"

namespace driftd::ipc {
namespace {

Frame sample() { return {FrameType::records, 42, std::string("payload\0with a zero", 19)}; }

core::Observation observation() {
  core::Observation o;
  o.id = {"role", "app"};
  o.body = R"({"a":1})";
  o.unread = {{"b.**", Code::denied, "no right"}};
  o.metadata = {{"k", "v"}};
  o.observed_ns = -5;
  o.tombstone = true;
  o.digest = {1, ~0ull};
  return o;
}

/// Feeds all bytes. Returns the number of frames before the end or the first fault.
int frames_in(std::string_view bytes) {
  FrameReader reader;
  reader.feed(bytes);
  for (int n = 0;; ++n) {
    const auto frame = reader.next();
    if (!frame || !*frame) return n;
  }
}

TEST(Wire, AFrameSurvivesBeingCutAtEveryByte) {
  const std::string bytes = render(sample());
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    FrameReader reader;
    reader.feed(std::string_view(bytes).substr(0, cut));
    const auto early = reader.next();
    ASSERT_TRUE(early);
    EXPECT_EQ(early->has_value(), cut == bytes.size());
    reader.feed(std::string_view(bytes).substr(cut));
    const auto frame = cut == bytes.size() ? early : reader.next();
    ASSERT_TRUE(frame && *frame);
    EXPECT_EQ((*frame)->payload, sample().payload);
    EXPECT_EQ((*frame)->call, 42u);
  }
}

TEST(Wire, EveryFlippedBitIsNoticed) {
  const std::string good = render(sample());
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(frames_in(bad), 0) << "bit " << bit;
  }
}

TEST(Wire, RandomBytesNeverMakeAFrame) {
  std::minstd_rand random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (auto& c : bytes) c = static_cast<char>(random());
    EXPECT_EQ(frames_in(bytes), 0);
    EXPECT_EQ(frames_in(render(sample()) + bytes), 1);
  }
}

TEST(Wire, AnImpossibleLengthIsCorruptBeforeItsBytesArrive) {
  std::string bytes = render(sample());
  bytes[11] = '\x7f';  // length above 8 MiB
  FrameReader reader;
  reader.feed(bytes);
  EXPECT_EQ(reader.next().error().code, Code::corrupt);
}

TEST(Wire, AnObservationComesBackAsItWas) {
  const auto back = decode<core::Observation>(encode(observation()));
  ASSERT_TRUE(back);
  EXPECT_EQ(core::render(back->id), "role/app");
  EXPECT_EQ(back->unread.at(0).code, Code::denied);
  EXPECT_EQ(back->metadata, observation().metadata);
  EXPECT_EQ(back->observed_ns, -5);
  EXPECT_TRUE(back->tombstone);
  EXPECT_EQ(back->digest, observation().digest);
}

TEST(Wire, ATruncatedOrLongerPayloadIsCorrupt) {
  const std::string good = encode(std::vector<core::Observation>{observation(), observation()});
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_FALSE(decode<std::vector<core::Observation>>(good.substr(0, cut))) << cut;
  }
  EXPECT_FALSE(decode<std::vector<core::Observation>>(good + "x"));
}

TEST(Wire, MutatedPayloadsNeverReadOutOfBoundsNorAllocateBeyondTheirSize) {
  std::minstd_rand random(11);
  const std::string good = encode(std::vector<core::Observation>{observation()});
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    const auto back = decode<std::vector<core::Observation>>(bad);
    if (back) {
      EXPECT_LE(back->size(), bad.size());
    }
  }
}

}  // namespace
}  // namespace driftd::ipc
