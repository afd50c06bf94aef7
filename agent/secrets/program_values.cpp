// SPDX-License-Identifier: Apache-2.0
#include "secrets/program_values.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/fatal.hpp"
#include "base/log.hpp"

namespace driftd::secrets {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstRetry{1'000}, kMaxRetry{60'000};

}  // namespace

ProgramValues::WatchedProgram::WatchedProgram(asio::any_io_executor core, config::ProgramUse used)
    : use(std::move(used)),
      due(std::move(core)),
      backoff(std::min(kFirstRetry, use.program.refresh), kMaxRetry) {}

ProgramValues::ProgramValues(asio::any_io_executor core, asio::any_io_executor io, const Clock& clock,
                             const std::vector<config::ProgramUse>& uses, Callbacks callbacks)
    : core_(core),
      io_(std::move(io)),
      clock_(clock),
      backend_(uses.front().backend),
      callbacks_(std::move(callbacks)),
      ended_(core) {
  for (const auto& use : uses) all_.push_back(std::make_unique<WatchedProgram>(core_, use));
}

void ProgramValues::start() {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    ++loops_;
    asio::co_spawn(core_, follow(shared_from_this(), i), fatal);
  }
}

void ProgramValues::cancel() {
  stopping_ = true;
  for (const auto& one : all_) {
    one->due.cancel();
    if (one->run) one->run->cancel();
  }
}

Task<void> ProgramValues::stop() {
  const auto self = shared_from_this();
  cancel();
  while (loops_ > 0) {
    ended_.expires_at(asio::steady_timer::time_point::max());
    co_await ended_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

Task<void> ProgramValues::follow(std::shared_ptr<ProgramValues> self, std::size_t index) {
  WatchedProgram& one = *self->all_[index];
  co_await asio::post(self->core_, asio::use_awaitable);  // no callback runs inside start()
  while (!self->stopping_) {
    one.run = std::make_shared<ProgramRun>(self->core_, self->io_, one.use);
    const auto output = co_await ProgramRun::run(one.run);
    if (self->stopping_) break;
    const auto wait = self->handle_output(one, output);
    one.run.reset();
    self->report_values();
    one.due.expires_after(wait);
    if (!self->stopping_) co_await one.due.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  one.run.reset();
  --self->loops_;
  self->ended_.cancel();
}

/// Evaluates a run. Returns the time until the next one.
milliseconds ProgramValues::handle_output(WatchedProgram& one, const Result<std::string>& output) {
  one.asked = true;
  const Nanos now = clock_.wall();
  std::string why = output ? std::string() : output.error().message;
  if (output) {
    auto answer = read_answer(*output, now);
    if (!answer) why = one.use.program.path + ": " + answer.error().message;
    if (answer) {
      one.answer = std::move(*answer);
      one.taken_ns = now;
    }
  } else if (const std::string line = last_line(one.run->errors(), {one.run->output(), one.answer.text});
             !line.empty()) {
    why += ": " + line;
  }
  callbacks_.ran(why.empty());
  if (!why.empty()) return note_failure(one, why);
  if (!one.failure.empty()) {
    log::room("app").info("{}: the program of {} answers again: {}", backend_, one.use.setting, one.use.program.path);
  }
  one.failure.clear();
  one.backoff.reset();
  const double jitter = std::uniform_real_distribution<double>(0, 1)(random_);
  return next_run(one.answer, one.use.program.refresh, now, jitter);
}

milliseconds ProgramValues::note_failure(WatchedProgram& one, const std::string& why) {
  const Nanos now = clock_.wall();
  const bool had = !one.answer.text.empty(), expires = one.answer.expires_ns != 0;
  const bool expired = had && expires && one.answer.expires_ns <= now;
  const bool first = one.failure.empty();
  one.failure = why;
  if (expired) one.answer = {};
  if (first || expired) {
    std::string means = "there is no answer of it yet";
    if (had) means = "the answer of " + render_time(one.taken_ns) + " stays in use";
    if (had && expires) means += " until " + render_time(one.answer.expires_ns);
    if (expired) means = "the answer of " + render_time(one.taken_ns) + " expired";
    const std::string message = "setting " + one.use.setting + ": " + why + "; " + means;
    log::room("app").warn("{}: {}", backend_, message);
    callbacks_.failing(message);
  }
  const auto wait = one.backoff.next();
  if (one.answer.expires_ns == 0) return wait;
  const milliseconds left{(one.answer.expires_ns - now) / 1'000'000 + 1};
  return std::min(wait, left);
}

/// Reports the values or the missing one, once every program has answered or failed.
void ProgramValues::report_values() {
  std::map<std::string, std::string> values;
  std::string missing;
  for (const auto& one : all_) {
    if (!one->asked) return;
    if (one->answer.text.empty() && missing.empty())
      missing = "setting " + one->use.setting + " has no value: " + one->failure;
    values[one->use.token] = one->answer.text;
  }
  if (!missing.empty()) {
    last_values_.clear();
    if (std::exchange(missing_, missing) != missing) callbacks_.missing(missing);
  } else if (values != last_values_) {
    missing_.clear();
    last_values_ = values;
    callbacks_.values(std::move(values));
  }
}

}  // namespace driftd::secrets
