// SPDX-License-Identifier: Apache-2.0
// The bytes of a SCRAM hello and of its answers: truncated, overlong and hostile answers are rejected, and never
// quoted.
#include "kafka/scram_wire.hpp"

#include <gmock/gmock.h>
#include <random>

#include "driftd/sdk/types.hpp"
#include "kafka/wire.hpp"

namespace driftd::kafka {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::string_literals;

constexpr const char* kNonce = "fyko+d2lbbFgONRv9qkxdawL";
// the server-first-message of RFC 5802, section 5
const std::string kFirst = "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096";

/// Returns the code and the text with which `work` failed.
template <class Work>
std::pair<driftd_status, std::string> refused(Work work) {
  try {
    work();
  } catch (const sdk::Failure& e) {
    return {e.code, e.what()};
  }
  return {DRIFTD_OK, "accepted"};
}

driftd_status parsed(const std::string& message) {
  return refused([&] { parse_server_first(message, kNonce); }).first;
}

/// Builds answers as a broker frames them, without the length.
std::string handshake_answer(int error, const std::string& rest) {
  return "\0\0\0\7\0"s + static_cast<char>(error) + rest;
}
std::string authenticate_answer(int error, const std::string& words, const std::string& message) {
  std::string out = "\0\0\0\7\0"s + static_cast<char>(error);
  if (words.empty())
    out += "\xff\xff";
  else
    out += "\0"s + static_cast<char>(words.size()) + words;
  return out + "\0\0"s + static_cast<char>(message.size() >> 8) + static_cast<char>(message.size()) + message;
}

TEST(KafkaScramWire, RequestsAreFramedAsKafkaReadsThem) {
  EXPECT_EQ(handshake_request(7, "SCRAM-SHA-256"), "\0\0\0\x1f\0\x11\0\1\0\0\0\7\0\6driftd\0\x0dSCRAM-SHA-256"s);
  EXPECT_EQ(authenticate_request(8, "n,,n=a,r=b"), "\0\0\0\x1e\0\x24\0\0\0\0\0\x08\0\6driftd\0\0\0\x0an,,n=a,r=b"s);
}

TEST(KafkaScramWire, NameCannotBreakOutOfItsAttribute) {
  EXPECT_EQ(client_first("a=b,r=evil", "n1"), "n,,n=a=3Db=2Cr=3Devil,r=n1");
}

TEST(KafkaScramWire, SaltAndIterationsAreReadAsTheRfcPrintsThem) {
  const ServerFirst first = parse_server_first(kFirst, kNonce);
  EXPECT_EQ(first.salt, "QSXCR+Q6sek8bf92");
  EXPECT_EQ(first.iterations, 4096);
  EXPECT_EQ(parse_server_first(kFirst + ",x=further", kNonce).iterations, 4096) << "extensions may follow";
}

TEST(KafkaScramWire, NonceThatDoesNotGoOnWithOursIsRefused) {
  EXPECT_EQ(refused([&] { parse_server_first(kFirst, "another"); }).first, DRIFTD_CORRUPT);
  EXPECT_EQ(refused([&] { parse_server_first(kFirst, ""); }).first, DRIFTD_CORRUPT);
  EXPECT_EQ(parsed("r=" + std::string(kNonce) + ",s=QSXCR+Q6sek8bf92,i=4096"), DRIFTD_CORRUPT)
      << "nothing of the server's own";
  EXPECT_EQ(parsed("r=x" + std::string(kNonce) + "y,s=QSXCR+Q6sek8bf92,i=4096"), DRIFTD_CORRUPT);
}

TEST(KafkaScramWire, EveryCutMessageIsRefused) {
  for (std::size_t size = 0; size + 4 < kFirst.size(); ++size) {
    EXPECT_EQ(parsed(kFirst.substr(0, size)), DRIFTD_CORRUPT) << kFirst.substr(0, size);
  }
}

TEST(KafkaScramWire, HostileMessagesAreRefused) {
  const std::string r = "r=" + std::string(kNonce) + "x,";
  for (const std::string& rest :
       {"m=must,s=QSXCR+Q6sek8bf92,i=1"s, "i=4096,s=QSXCR+Q6sek8bf92"s, "s=,i=1"s, "s=QSXCR,i=1"s, "s=QSX*R+Q6,i=1"s,
        "s=====,i=1"s, "s=Q===,i=1"s, "s=QSXC,i="s, "s=QSXC,i=0"s, "s=QSXC,i=-1"s, "s=QSXC,i=+1"s, "s=QSXC,i=1e3"s,
        "s=QSXC,i=2147483648"s, "s=QSXC,i=1 "s, "s=QSXC\0,i=1"s, "s=" + std::string(1028, 'A') + ",i=1", ""s, ","s,
        "e=other-error"s}) {
    EXPECT_EQ(parsed(r + rest), DRIFTD_CORRUPT) << rest;
  }
  EXPECT_EQ(parsed("m=must," + kFirst), DRIFTD_CORRUPT) << "an extension that we would have to know";
}

TEST(KafkaScramWire, RefusalRepeatsNothingOfTheMessage) {
  const auto [code, text] =
      refused([&] { parse_server_first("r=" + std::string(kNonce) + "x,s=canary,i=4096", kNonce); });
  EXPECT_EQ(code, DRIFTD_CORRUPT);
  EXPECT_THAT(text, Not(HasSubstr("canary")));
}

TEST(KafkaScramWire, LengthThatIsTooMuchOrTooLittleIsRefusedBeforeAnythingIsRead) {
  EXPECT_EQ(answer_size("hello", "\0\0\0\x10"s, kMaxAnswer), 16u);
  EXPECT_EQ(answer_size("hello", "\0\0\x40\0"s, kMaxAnswer), kMaxAnswer);
  for (const std::string& head :
       {"\0\0\x40\1"s, "\0\0\0\3"s, "\0\0\0\0"s, "\xff\xff\xff\xff"s, "\x15\3\3\0"s, "\0\0"s, ""s}) {
    EXPECT_EQ(refused([&] { answer_size("hello", head, kMaxAnswer); }).first, DRIFTD_CORRUPT);
  }
}

TEST(KafkaScramWire, MechanismThatIsNotEnabledIsUnsupportedAndTheOthersAreNamed) {
  const auto [code, text] =
      refused([&] { parse_handshake(handshake_answer(33, "\0\0\0\1\0\5PLAIN"s), 7, "SCRAM-SHA-512"); });
  EXPECT_EQ(code, DRIFTD_UNSUPPORTED);
  EXPECT_THAT(text, HasSubstr("SCRAM-SHA-512 is not enabled at this listener (enabled: PLAIN)"));
  const auto plain = refused([&] { parse_handshake(handshake_answer(34, "\0\0\0\0"s), 7, "SCRAM-SHA-512"); });
  EXPECT_EQ(plain.first, DRIFTD_UNSUPPORTED);
  EXPECT_THAT(plain.second, HasSubstr("settings.scram_hello.servers"));
  EXPECT_EQ(refused([&] { parse_handshake(handshake_answer(0, "\0\0\0\0"s), 7, "SCRAM-SHA-512"); }).first, DRIFTD_OK);
}

TEST(KafkaScramWire, UnknownUserIsNotKnownAndNotGone) {
  const auto [code, text] =
      refused([&] { parse_authenticate(authenticate_answer(58, "invalid credentials\n", ""), 7); });
  EXPECT_EQ(code, DRIFTD_UNAVAILABLE);
  EXPECT_THAT(text, HasSubstr("invalid credentials"));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
}

TEST(KafkaScramWire, AnswersThatAreCutOrOfAnotherRequestAreRefused) {
  const std::string whole = authenticate_answer(0, "", kFirst);
  EXPECT_EQ(parse_authenticate(whole, 7), kFirst);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(refused([&] { parse_authenticate(whole.substr(0, size), 7); }).first, DRIFTD_CORRUPT) << size;
  }
  EXPECT_EQ(refused([&] { parse_authenticate(whole, 8); }).first, DRIFTD_CORRUPT);
  EXPECT_EQ(refused([&] { parse_authenticate("\0\0\0\7\0\0\xff\xff\x7f\xff\xff\xff"s, 7); }).first, DRIFTD_CORRUPT);
  EXPECT_EQ(refused([&] { parse_authenticate("\0\0\0\7\0\0\xff\xff\x80\0\0\0"s, 7); }).first, DRIFTD_CORRUPT);
  EXPECT_EQ(refused([&] { parse_handshake("\0\0\0\7\0\x21\x7f\xff\xff\xff\0\1a"s, 7, "x"); }).first, DRIFTD_CORRUPT)
      << "more mechanisms than there are bytes";
}

TEST(KafkaScramWire, DamagedAnswersAreReadOrRefusedAsCorruptAndNeverReadBeyond) {
  std::mt19937 random(7);
  const std::vector<std::string> whole{handshake_answer(33, "\0\0\0\2\0\5PLAIN\0\x0dSCRAM-SHA-256"s),
                                       authenticate_answer(0, "", kFirst), authenticate_answer(58, "refused", "")};
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = whole[random() % whole.size()];
    for (unsigned n = random() % 4 + 1; n > 0; --n) damaged[random() % damaged.size()] = static_cast<char>(random());
    damaged.resize(random() % (damaged.size() + 1));
    damaged.shrink_to_fit();
    const auto code = refused([&] {
                        parse_handshake(damaged, 7, "SCRAM-SHA-256");
                        parse_server_first(parse_authenticate(damaged, 7), kNonce);
                      }).first;
    EXPECT_TRUE(code == DRIFTD_OK || code == DRIFTD_CORRUPT || code == DRIFTD_UNSUPPORTED || code == DRIFTD_UNAVAILABLE)
        << code;
  }
}

}  // namespace
}  // namespace driftd::kafka
