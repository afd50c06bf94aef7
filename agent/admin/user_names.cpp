// SPDX-License-Identifier: Apache-2.0
#include "admin/user_names.hpp"

#include <pwd.h>
#include <algorithm>
#include <atomic>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <system_error>
#include <thread>
#include <vector>

#include "base/log.hpp"

namespace driftd::admin {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::size_t kMaxAnswers = 256;
constexpr std::chrono::milliseconds kMinPause{1}, kMaxPause{50};  // pause between two checks for the answer

std::string uid_text(std::uint32_t uid) { return "uid:" + std::to_string(uid); }

}  // namespace

std::string user_name(std::uint32_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16 * 1024);
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return found->pw_name;
  return uid_text(uid);
}

/// The thread writes `name` first and `done` second; nobody reads `name` before `done` is true.
struct UserNames::Answer {
  std::string name;
  std::atomic<bool> done = false;
  Steady::time_point asked = Steady::now();
  std::string meanwhile;  ///< shown until then: the name that was found before, or the number
};

/// Starts the look-up on a thread of its own. Returns nullptr if no thread can be started or too many look-ups are
/// stored.
std::shared_ptr<UserNames::Answer> UserNames::ask(std::uint32_t uid, std::string meanwhile) {
  std::erase_if(answers_,
                [](const auto& item) { return item.second->done && Steady::now() - item.second->asked >= kKept; });
  if (answers_.size() >= kMaxAnswers) return nullptr;
  const auto answer = std::make_shared<Answer>();
  answer->meanwhile = std::move(meanwhile);
  try {
    std::thread([answer, find = find, uid] {
      answer->name = find(uid);
      answer->done = true;
    }).detach();
  } catch (const std::system_error& none) {
    log::room("admin").warn("no thread to look up the name of uid {}: {}", uid, none.what());
    return nullptr;
  }
  answers_[uid] = answer;
  return answer;
}

Task<std::string> UserNames::of(std::shared_ptr<UserNames> self, std::uint32_t uid) {
  const auto known = self->answers_.find(uid);
  auto answer = known == self->answers_.end() ? nullptr : known->second;
  if (!answer || (answer->done && Steady::now() - answer->asked >= kKept)) {
    answer = self->ask(uid, answer ? answer->name : uid_text(uid));
    if (!answer) co_return uid_text(uid);
  }
  asio::steady_timer timer(co_await asio::this_coro::executor);
  boost::system::error_code ignored;  // the timer is never cancelled
  const auto until = answer->asked + kPatience;
  const bool waits = !answer->done && Steady::now() < until;
  for (auto wait = kMinPause; !answer->done && Steady::now() < until; wait = std::min(wait * 2, kMaxPause)) {
    timer.expires_after(wait);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  if (answer->done) co_return answer->name;
  if (waits) {
    log::room("admin").warn(
        "the name of uid {} has not been found for {} ms: until the name service answers it is written as {}", uid,
        kPatience.count(), answer->meanwhile);
  }
  co_return answer->meanwhile;
}

}  // namespace driftd::admin
