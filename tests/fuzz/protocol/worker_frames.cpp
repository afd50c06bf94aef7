// SPDX-License-Identifier: Apache-2.0
#include "fuzz/protocol/worker_frames.hpp"

namespace driftd::fuzz {

using ipc::encode;
using ipc::Frame;
using ipc::FrameType;

ipc::LoadAnswer loaded() {
  ipc::LoadAnswer out;
  out.file = "/etc/passwd";  // not the file that the agent asked for
  out.describe =
      R"({"id":"hostile","version":"1.0","types":["hostile"],"kinds":["thing"],"metrics":[{"name":"things"}],)"
      R"("extensions":[{"id":"driftd.watch","revision":1}],"diff":true})";
  out.settings_schema = R"({"type":"object"})";
  out.kinds["thing"] = R"({"schema":"driftd-schema/1","kind":"thing","revision":1,"class":"config","attributes":{}})";
  return out;
}

core::Observation observation(const std::string& id) {
  core::Observation out;
  out.id = {"thing", id};
  out.body = R"({"a":1,"b":{"c":["d"]}})";
  out.unread = {{"e.**", Code::denied, "no right"}};
  out.metadata = {{"owner", "team"}};
  out.observed_ns = 1'700'000'000'000'000'000;
  out.digest = {1, 2};
  return out;
}

std::string answer(const std::string& body) {
  ipc::CallResult result;
  result.body = body;
  return encode(result);
}

std::vector<Frame> all_frames(std::uint64_t call) {
  const core::Diagnostic diagnostic{Code::denied, "thing", "1", "a", "may not", "+list", 100, "orders"};
  const core::HealthReport health{core::HealthReport::State::up, 42, "", "primary", "id-1", "9"};
  const std::vector<core::Demotion> demotions{{0, true, "still applying"}};
  return {{FrameType::records, call, encode(std::vector<core::Observation>{observation("1"), observation("2")})},
          {FrameType::mark, call, encode(core::Mark{core::Mark::Type::checkpoint, "thing", "cursor", 2})},
          {FrameType::mark, call, encode(core::Mark{core::Mark::Type::complete, "thing", "", 2, "orders"})},
          {FrameType::diagnostic, call, encode(diagnostic)},
          {FrameType::log, call, encode(ipc::LogLine{1, "a line"})},
          {FrameType::metric, call, encode(ipc::Gauge{"things", "2"})},
          {FrameType::permit, call, encode(ipc::PermitRequest{1, "list", 1})},
          {FrameType::result, call, answer()},
          {FrameType::result, call, answer(encode(ipc::RefreshAnswer{false, 7000}))},
          {FrameType::result, call, answer(encode(health))},
          {FrameType::result, call, answer(encode(demotions))},
          {FrameType::result, call, answer(encode(loaded()))}};
}

std::string mutated(std::string bytes, Random& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t rounds = 1 + below(4); rounds > 0; --rounds) {
    const std::size_t at = below(bytes.size() + 1);
    switch (below(5)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes += bytes.substr(at);
        break;
      case 3:
        bytes.insert(at, std::string(1 + below(200), static_cast<char>(random())));
        break;
      default:  // overwrites four bytes: a length, a count or a number
        for (std::size_t i = at; i < std::min(bytes.size(), at + 4); ++i) bytes[i] = below(2) == 0 ? '\xff' : '\x7f';
    }
    if (bytes.size() > 4096) bytes.resize(4096);
  }
  return bytes;
}

namespace {

std::string odd_text(Random& random, std::size_t max_bytes) {
  static constexpr std::string_view kPieces[] = {
      "a",    "\n",          "\x1b[2J", "\xc3\xa9", "\xf0\x9f\x98\x80", "\"",    "\\",  "{", "[[[[", "%s", "'; DROP",
      "\x7f", "token-value", "$hmac",   "**",       "[REDACTED]",       "1e999", "null"};
  std::string out;
  for (auto pieces = random() % 20; pieces > 0 && out.size() < max_bytes; --pieces)
    out += kPieces[random() % std::size(kPieces)];
  if (random() % 50 == 0) out += std::string(max_bytes, 'x');
  out.resize(std::min(out.size(), max_bytes));
  return out;
}

std::int64_t odd_number(Random& random) {
  static constexpr std::int64_t kNumbers[] = {0, -1, 1, INT64_MIN, INT64_MAX, 1'700'000'000'000'000'000};
  return kNumbers[random() % std::size(kNumbers)];
}

core::Observation odd_observation(Random& random) {
  core::Observation out = observation(std::to_string(random() % 1000));
  if (random() % 2 == 0) out.body = odd_text(random, 3000);
  if (random() % 2 == 0) out.status = odd_text(random, 500);
  out.observed_ns = odd_number(random);
  out.schema_revision = static_cast<std::uint32_t>(random());
  out.tombstone = random() % 8 == 0;
  for (auto n = random() % 3; n > 0; --n)
    out.unread.push_back({"a.b", static_cast<Code>(random() % 15), odd_text(random, 9000) + "\xff"});
  return out;
}

}  // namespace

Frame odd_frame(std::uint64_t call, Random& random) {
  const core::Diagnostic diagnostic{static_cast<Code>(random() % 15),
                                    odd_text(random, 100) + "\xff",
                                    odd_text(random, 5000),
                                    odd_text(random, 100),
                                    odd_text(random, 20'000),
                                    "+x",
                                    odd_number(random),
                                    odd_text(random, 5000)};
  const std::string numbers[] = {"1", "-1e308", "nan", "inf", "0x10", "1e-400"};
  switch (random() % 8) {
    case 0:
      return {FrameType::mark, call,
              encode(core::Mark{core::Mark::Type::bookmark, "", odd_text(random, 6000), random()})};
    case 1:
      return {FrameType::mark, call,
              encode(core::Mark{core::Mark::Type::complete, "thing", "", random(), odd_text(random, 5000)})};
    case 2:
      return {FrameType::diagnostic, call, encode(diagnostic)};
    case 3:
      if (random() % 64 != 0) return {FrameType::metric, call, encode(ipc::Gauge{"things", "2"})};
      return {FrameType::log, call, encode(ipc::LogLine{static_cast<std::int32_t>(random()), odd_text(random, 9000)})};
    case 4:
      return {FrameType::metric, call, encode(ipc::Gauge{"things", numbers[random() % std::size(numbers)]})};
    default: {
      std::vector<core::Observation> records;
      for (auto n = 1 + random() % 10; n > 0; --n) records.push_back(odd_observation(random));
      return {FrameType::records, call, encode(records)};
    }
  }
}

Frame any_frame(std::uint64_t call, Random& random) {
  static constexpr std::uint16_t kTypes[] = {1, 3, 4, 9, 10, 32, 33, 34, 35, 36, 37, 38};
  const auto real = all_frames(call);
  Frame out = real[random() % real.size()];
  const auto dice = random() % 100;
  if (dice < 40) out.payload = mutated(std::move(out.payload), random);
  if (dice >= 40 && dice < 50) out.type = static_cast<FrameType>(kTypes[random() % std::size(kTypes)]);
  if (dice >= 50 && dice < 53) out.call = random();
  if (dice >= 53 && dice < 60) {
    out.payload.assign(random() % 300, '\0');
    for (auto& c : out.payload) c = static_cast<char>(random());
  }
  return out;
}

}  // namespace driftd::fuzz
