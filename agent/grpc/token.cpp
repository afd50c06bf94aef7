// SPDX-License-Identifier: Apache-2.0
#include "grpc/token.hpp"

#include <fmt/format.h>
#include <charconv>

#include "base/digest.hpp"

namespace driftd::rpc {
namespace {

constexpr std::size_t kMaxToken = 64;

/// Reads a part of lower-case hex up to the next dot, without leading zeros.
bool read_part(std::string_view& text, std::uint64_t& out) {
  const auto part = text.substr(0, text.find('.'));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return std::from_chars(part.data(), part.data() + part.size(), out, 16).ptr == part.data() + part.size();
}

}  // namespace

std::string render(const ResumeToken& token) {
  std::string out = fmt::format("1.{:x}.{:x}", token.incarnation, token.seq);
  return out + fmt::format(".{:08x}", crc32c(out));
}

Result<ResumeToken> parse_token(std::string_view text) {
  std::string_view rest = text;
  std::uint64_t version = 0, incarnation = 0, seq = 0;
  const bool good = text.size() <= kMaxToken && read_part(rest, version) && version == 1 &&
                    read_part(rest, incarnation) && read_part(rest, seq) && seq <= INT64_MAX;
  const ResumeToken token{incarnation, static_cast<std::int64_t>(seq)};
  if (good && render(token) == text) return token;
  return fail(Code::invalid,
              "resume_token is not a token of this service; expected the text of a SubscribeResponse, byte for byte; "
              "found " +
                  std::to_string(text.size()) +
                  " bytes that are not; subscribe with START_OLDEST to get everything that is kept");
}

}  // namespace driftd::rpc
