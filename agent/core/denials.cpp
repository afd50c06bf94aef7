// SPDX-License-Identifier: Apache-2.0
#include "core/denials.hpp"

#include <utility>

namespace driftd::core {
namespace {

constexpr int kMaxLinesOfUser = 5, kMaxLinesOfAll = 30;  // audit lines in a minute, of one user and of all
constexpr std::size_t kMaxUsers = 1024;

}  // namespace

std::optional<std::uint64_t> Denials::admit(const Who& who, Clock::time_point now) {
  if (minute_ == Clock::time_point{} || now - minute_ >= std::chrono::minutes(1)) {
    minute_ = now;
    lines_ = 0;
    std::erase_if(users_, [](const auto& user) { return user.second.unwritten == 0; });
    if (users_.size() >= kMaxUsers) users_.clear();
    for (auto& [other, user] : users_) user.lines = 0;
  }
  if (users_.size() >= kMaxUsers && !users_.contains(who.key)) return std::nullopt;
  User& user = users_[who.key];
  user.who = who;
  if (user.lines >= kMaxLinesOfUser || lines_ >= kMaxLinesOfAll) {
    ++user.unwritten;
    return std::nullopt;
  }
  ++user.lines;
  ++lines_;
  return std::exchange(user.unwritten, 0);
}

std::vector<AuditEntry> Denials::unwritten_lines(Clock::time_point now, Nanos at_ns, bool all) {
  std::vector<AuditEntry> out;
  if (!all && now - minute_ < std::chrono::minutes(1)) return out;
  for (auto& [key, user] : users_) {
    if (user.unwritten == 0) continue;
    AuditEntry line;
    line.at_ns = at_ns;
    line.actor = user.who.actor;
    line.caller = user.who.process;
    line.verb = "refused";
    line.subject = "further requests";
    line.outcome =
        "denied: " + std::to_string(std::exchange(user.unwritten, 0)) + " more of this caller since the last line";
    const bool says_more = user.who.process.uid < 0 && key != user.who.actor && !key.empty();
    if (says_more) line.reason = "from " + shortened(key, 64);
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace driftd::core
