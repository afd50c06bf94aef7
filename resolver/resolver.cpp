// SPDX-License-Identifier: Apache-2.0
#include "resolver/resolver.hpp"

#include <spdlog/spdlog.h>
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "resolver/config_file.hpp"
#include "resolver/document.hpp"
#include "resolver/lookup.hpp"

namespace driftd::resolver {
namespace {

using consumer::Code;
using consumer::Secret;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kRetryFirst{250}, kRetryMax{5'000};
constexpr milliseconds kSettle{250};  // after an event, for those that follow it
/// An event may be there before the value: a mounted Secret follows only after a minute or two.
constexpr milliseconds kPatience{180'000};

/// Wakes the loop: an event of the agent, or the end.
class Bell {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    wake_.notify_all();
  }
  /// Returns true if it rang.
  bool wait(milliseconds max, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, max, [this] { return rung_; });
    return std::exchange(rung_, false);
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool rung_ = false;
};

/// Logs each message of a failure once until its end: two that alternate (refused, asked again soon) fill no log.
class Troubles {
 public:
  void note(const std::string& subject, const std::string& message) {
    auto& said = said_[subject];
    if (said.size() >= kMaxSaid) said.clear();
    if (!said.insert(message).second) return;
    log::room("resolver").warn("{}", message);
  }
  void over(const std::string& subject) {
    if (said_.erase(subject) != 0) log::room("resolver").info("{} is good again", subject);
  }

 private:
  static constexpr std::size_t kMaxSaid = 32;
  std::map<std::string, std::set<std::string>> said_;
};

/// What the file has, and how it gets there.
class Work {
 public:
  Work(const Settings& settings, std::shared_ptr<consumer::AgentLink> link)
      : settings_(settings),
        lookup_(settings, std::move(link)),
        file_(settings.output) {
    file_.remove_leftovers();
    if (settings_.follow) keep_former();
    if (!file_.in_memory()) {
      log::room("resolver")
          .warn(
              "{} is not on a volume in memory, and passwords will be written to it in clear; use an emptyDir with "
              "medium: Memory",
              settings.output);
    }
  }

  enum class Pass { done, retry, hopeless };
  /// Resolves everything once, and writes the file if it is to change.
  Pass pass() {
    Pass out = Pass::done;
    bool whole = true;
    for (const auto& binding : settings_.bindings) {
      const Pass one = resolve(binding);
      const bool missing = binding.required && slots_.count(binding.slot) == 0;
      if (missing) whole = false;
      if (one == Pass::hopeless && missing) out = Pass::hopeless;
      if (one != Pass::done && out == Pass::done && (binding.required || settings_.follow)) out = Pass::retry;
    }
    if (!whole) return out;
    return write() ? out : Pass::retry;
  }
  bool written() const { return written_; }

 private:
  /// A sidecar that starts again goes on with what its file says, until it knows better.
  void keep_former() {
    former_ = parse_document(file_.read().value_or(Secret()));
    std::erase_if(former_, [this](const auto& slot) {
      return std::none_of(settings_.bindings.begin(), settings_.bindings.end(),
                          [&](const Binding& each) { return each.slot == slot.first; });
    });
  }

  Pass resolve(const Binding& binding) {
    const std::string subject = "slot " + binding.slot;
    auto found = lookup_.find(binding);
    if (!found) {
      const Code code = found.error().code;
      const bool gone = !binding.required && code == Code::not_found;
      if (gone) forget(binding.slot);
      const bool kept = slots_.count(binding.slot) + former_.count(binding.slot) != 0;
      troubles_.note(subject, found.error().message + (kept ? "; the file keeps what is known of it" : ""));
      return code == Code::invalid || code == Code::internal ? Pass::hopeless : Pass::retry;
    }
    const bool provisional = found->backend.provisional;
    found->backend.provisional = false;
    forget(binding.slot);
    slots_[binding.slot] = std::move(*found);
    if (!provisional) {
      troubles_.over(subject);
      return Pass::done;
    }
    troubles_.note(subject, "driftd's agent does not answer; the file keeps what it said last of slot " + binding.slot);
    return Pass::retry;
  }

  void forget(const std::string& slot) {
    slots_.erase(slot);
    former_.erase(slot);
  }

  bool write() {
    const Secret text = render_document(slots_, former_);
    if (file_.has(text)) {
      written_ = true;
      return true;
    }
    const auto done = file_.write(text);
    if (!done) {
      troubles_.note("the file", done.error().message);
      return false;
    }
    troubles_.over("the file");
    log::room("resolver")
        .info("{} {}: {} of {} slots", settings_.output, written_ ? "replaced" : "written",
              slots_.size() + former_.size(), settings_.bindings.size());
    written_ = true;
    return true;
  }

  const Settings& settings_;
  Lookup lookup_;
  ConfigFile file_;
  Troubles troubles_;
  std::map<std::string, consumer::SlotConfig> slots_;
  Former former_;  ///< of an earlier run: slots that were not resolved since
  bool written_ = false;
};

/// The init container: until the file is there, or the time is over.
int wait_for_all(const Settings& settings, Work& work, Bell& bell, const std::stop_token& stop) {
  const auto end = Clock::now() + settings.timeout;
  milliseconds wait = kRetryFirst;
  while (!stop.stop_requested()) {
    const auto pass = work.pass();
    if (work.written()) return 0;
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    if (pass == Work::Pass::hopeless) {
      log::room("resolver").error("a retry does not help; correct what the line above names");
      return 1;
    }
    if (left.count() <= 0) break;
    bell.wait(std::min(wait, left), stop);
    wait = std::min(wait * 2, kRetryMax);
  }
  log::room("resolver")
      .error("{} was not written: not every required binding was there within {} s; the lines above say which and why",
             settings.output, std::chrono::duration<double>(settings.timeout).count());
  return 1;
}

void follow(const Settings& settings, Work& work, Bell& bell, const std::stop_token& stop) {
  milliseconds wait = kRetryFirst;
  auto eager_until = Clock::now();
  Bell never;
  while (!stop.stop_requested()) {
    const bool calm = work.pass() == Work::Pass::done && Clock::now() >= eager_until;
    const bool rang = bell.wait(calm ? settings.interval : wait, stop);
    if (rang) {
      log::room("resolver").debug("driftd's agent reports events; everything is resolved again");
      eager_until = Clock::now() + kPatience;
      never.wait(kSettle, stop);  // a flow of events is a pass now and then, not one for each
    }
    wait = rang || calm ? kRetryFirst : std::min({wait * 2, kRetryMax, settings.interval});
  }
}

/// Reads the agent's events, again and again. Without them the file is true after `interval`.
void listen(consumer::AgentLink& link, const std::vector<std::string>& names, Bell& bell, const std::stop_token& stop) {
  milliseconds wait = kRetryFirst;
  Bell never;
  std::string last;
  while (!stop.stop_requested()) {
    const auto began = Clock::now();
    const auto ended = consumer::follow_agent(
        link, names, [&bell] { bell.ring(); }, stop);
    if (Clock::now() - began > kRetryMax) {  // it stood; a peer that ends each stream at once is asked ever more slowly
      wait = kRetryFirst;
      last.clear();
    }
    if (!ended && ended.error().message != last) log::room("resolver").warn("{}", ended.error().message);
    last = ended ? "" : ended.error().message;
    never.wait(wait, stop);
    wait = std::min(wait * 2, kRetryMax);
  }
}

std::vector<std::string> backends_of(const Settings& settings) {
  std::set<std::string> out;
  for (const auto& binding : settings.bindings) {
    if (!binding.backend.empty()) out.insert(binding.backend);
  }
  return {out.begin(), out.end()};
}

}  // namespace

int run(Settings settings, std::stop_token stop) {
  std::shared_ptr<consumer::AgentLink> link;
  if (settings.agent) {
    auto made = consumer::link_agent(*settings.agent);
    if (!made) {
      log::room("resolver").error("{}", made.error().message);
      return 1;
    }
    link = std::move(*made);
  }
  Bell bell;
  Work work(settings, link);
  if (!settings.follow) return wait_for_all(settings, work, bell, stop);
  std::jthread events;
  const auto names = backends_of(settings);
  if (link && !names.empty()) {
    events = std::jthread([&link, &names, &bell, stop] { listen(*link, names, bell, stop); });
  }
  follow(settings, work, bell, stop);
  log::room("resolver").info("stopped; {} stays as it is", settings.output);
  return 0;
}

}  // namespace driftd::resolver
