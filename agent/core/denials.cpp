// SPDX-License-Identifier: Apache-2.0
#include "core/denials.hpp"

#include <utility>

namespace driftd::core {
namespace {

constexpr int kMaxLinesOfUser = 5, kMaxLinesOfAll = 30;  // audit lines in a minute, of one user and of all
constexpr std::size_t kMaxUsers = 1024;

}  // namespace

std::optional<std::uint64_t> Denials::admit(const std::string& caller, Clock::time_point now,
                                            const std::string& actor) {
  if (minute_ == Clock::time_point{} || now - minute_ >= std::chrono::minutes(1)) {
    minute_ = now;
    lines_ = 0;
    std::erase_if(users_, [](const auto& user) { return user.second.unwritten == 0; });
    if (users_.size() >= kMaxUsers) users_.clear();
    for (auto& [other, user] : users_) user.lines = 0;
  }
  if (users_.size() >= kMaxUsers && !users_.contains(caller)) return std::nullopt;
  User& user = users_[caller];
  user.actor = actor;
  if (user.lines >= kMaxLinesOfUser || lines_ >= kMaxLinesOfAll) {
    ++user.unwritten;
    return std::nullopt;
  }
  ++user.lines;
  ++lines_;
  return std::exchange(user.unwritten, 0);
}

std::vector<Denials::Unwritten> Denials::take_unwritten(Clock::time_point now, bool all) {
  std::vector<Unwritten> out;
  if (!all && now - minute_ < std::chrono::minutes(1)) return out;
  for (auto& [caller, user] : users_) {
    if (user.unwritten > 0) out.push_back({caller, user.actor, std::exchange(user.unwritten, 0)});
  }
  return out;
}

}  // namespace driftd::core
