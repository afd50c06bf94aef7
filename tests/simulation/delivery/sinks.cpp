// SPDX-License-Identifier: Apache-2.0
// The sinks of one process of the agent, in front of the models.
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include "simulation/delivery/receivers.hpp"
#include "sinks/common/marks.hpp"
#include "sinks/webhook/webhook_sink.hpp"

namespace driftd::sim {
namespace {

using core::Attempt;
using Outcome = Attempt::Outcome;
using namespace std::chrono_literals;

Task<void> wait_for(Duration time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

/// Counts an attempt as open until its answer, also if its process ends meanwhile.
struct Open {
  Open(Receipts& r, std::string k) : receipts(r), key(std::move(k)) { receipts.attempt_begins(key); }
  ~Open() { answered(); }
  void answered() {
    if (!std::exchange(over, true)) receipts.attempt_ends(key);
  }
  Receipts& receipts;
  std::string key;
  const Time begun = SimulatedTime::get().now();
  bool over = false;
};

/// Follows the rules of sinks/nats/nats_sink.cpp, with its marks.
class StreamSink final : public core::Sink {
 public:
  explicit StreamSink(Stream& to) : to_(to) {}
  ~StreamSink() override {
    to_.reconnected = [] {};
  }
  core::RetryPolicy policy() const override { return {true, {}, 256}; }
  Task<Status> start() override {
    co_await wait_for(to_.latency());
    if (!to_.up) co_return no_connection();
    connected_ = true;
    co_return Status{};
  }
  bool must_check() const override { return connected_ && to_.up && !trusted(); }
  void attach(std::function<void()> wake) override {
    wake_ = wake;
    to_.reconnected = std::move(wake);
  }
  Task<Attempt> send(core::StoredEvent event) override;
  Task<Result<std::optional<std::int64_t>>> check(std::map<std::string, std::string>& notes) override;
  void note(std::map<std::string, std::string>& notes, std::int64_t settled_to) override {
    if (!marks_read_) return;
    marks_.promise(settled_to);
    marks_.write(notes);
  }
  Task<void> stop() override { co_return; }
  std::string describe() const override { return "simulated stream"; }

 private:
  using Connection = std::pair<std::uint64_t, std::uint64_t>;
  Connection now() const { return {to_.connection, doubts_}; }
  bool trusted() const { return checked_ && *checked_ == now(); }
  tl::unexpected<Error> no_connection() {
    to_.receipts.endpoint_failed();
    return fail(Code::unavailable, "no connection");
  }
  Attempt fails(std::string why) {
    to_.receipts.endpoint_failed();
    return {Outcome::retry_sink, std::move(why), 0};
  }
  struct Published {
    std::string id;
    Stream::Ack ack;
  };
  Attempt judge(const core::StoredEvent& event, const Published& published, Time sent);
  std::optional<std::int64_t> find_loss();

  Stream& to_;
  std::function<void()> wake_ = [] {};
  sinks::Marks marks_;
  bool connected_ = false, marks_read_ = false;
  std::optional<Connection> checked_;
  std::uint64_t doubts_ = 0;
};

/// As sinks/nats/encode.cpp: a replay is no duplicate.
std::string message_id(const core::StoredEvent& event) {
  if (!event.replay) return event.stamp.id;
  return event.stamp.id + "_r" + std::to_string(SimulatedTime::get().now().time_since_epoch() / 1s);
}

Task<Attempt> StreamSink::send(core::StoredEvent event) {
  if (!to_.up || !trusted()) co_return fails("not connected, or not checked");
  Open open(to_.receipts, event.key);
  const auto connection = to_.connection;
  co_await wait_for(to_.latency());
  if (!to_.up || to_.connection != connection) {
    open.answered();
    co_return fails("the connection was lost");
  }
  to_.oracle->sent("bus", event);
  const std::string id = message_id(event);
  const auto ack = to_.append(event, id);
  const bool lost = to_.chance(to_.ack_lost);
  co_await wait_for(lost ? Duration(7s) : to_.time_of_ack());
  open.answered();
  if (lost || to_.connection != connection) co_return fails("no ack");
  co_return judge(event, {id, ack}, open.begun);
}

Attempt StreamSink::judge(const core::StoredEvent& event, const Published& published, Time sent) {
  const auto& [id, ack] = published;
  if (!trusted()) return fails("acknowledged on a connection that was not checked");
  if (!marks_.acked(ack.stream_seq, ack.duplicate, id, event.replay ? 0 : event.stamp.seq)) {
    ++doubts_;
    wake_();
    return fails("a sequence number was given twice");
  }
  to_.receipts.acknowledged(event, sent);
  to_.oracle->note("bus acknowledged " + event.stamp.id);
  return {};
}

std::optional<std::int64_t> StreamSink::find_loss() {
  const auto& all = marks_.all();
  const auto& last = marks_.last();
  const auto holds = [this](const auto& mark) { return to_.holds(mark.stream_seq, mark.id); };
  if (last.stream_seq == 0 || (holds(last) && std::all_of(all.begin(), all.end(), holds))) return std::nullopt;
  std::int64_t safe = 0;
  std::size_t kept = 0;
  for (; kept < all.size() && holds(all[kept]); ++kept) safe = all[kept].safe;
  marks_.keep_oldest(kept);
  return safe;
}

Task<Result<std::optional<std::int64_t>>> StreamSink::check(std::map<std::string, std::string>& notes) {
  using Answer = Result<std::optional<std::int64_t>>;
  if (!std::exchange(marks_read_, true)) marks_.read(notes);
  const Connection before = now();
  co_await wait_for(to_.latency());
  if (!to_.up || !(before == now())) co_return Answer(no_connection());
  checked_ = before;
  std::string& created = notes["stream_created"];
  const bool anew = !created.empty() && created != std::to_string(to_.created);
  created = std::to_string(to_.created);
  std::optional<std::int64_t> loss = find_loss();
  if (anew) {
    loss = 0;
    marks_.keep_oldest(0);
  }
  if (loss) to_.receipts.rewound_far();
  to_.oracle->note("bus was checked, loss " + std::to_string(loss.value_or(-1)));
  co_return Answer(loss);
}

/// Follows sinks/webhook/webhook_sink.cpp; what an answer means is decided there.
class HookSink final : public core::Sink {
 public:
  explicit HookSink(Hook& to) : to_(to) {}
  core::RetryPolicy policy() const override { return {false, {0s, 5s, 5min, 30min, 2h, 5h, 10h, 14h, 20h, 24h}, 8}; }
  Task<Status> start() override { co_return Status{}; }
  Task<Attempt> send(core::StoredEvent event) override;
  Task<void> stop() override { co_return; }
  std::string describe() const override { return "simulated endpoint"; }

 private:
  sinks::HttpAnswer answer(const core::StoredEvent& event, bool concerned);
  Attempt judge(const core::StoredEvent& event, const sinks::HttpAnswer& answer, Time sent);

  Hook& to_;
};

sinks::HttpAnswer HookSink::answer(const core::StoredEvent& event, bool concerned) {
  if (to_.poisoned.count(event.stamp.id) != 0) return {400, 0, false, ""};
  if (concerned && to_.mode == Hook::Mode::refuses_connections) return {0, 0, true, "connection refused"};
  if (concerned && to_.mode == Hook::Mode::hangs) return {0, 0, false, "no answer within 20 s"};
  if (concerned && to_.mode == Hook::Mode::gone) return {410, 0, false, ""};
  if (concerned && to_.mode == Hook::Mode::answers) return {to_.status, to_.retry_after_ms, false, ""};
  to_.receipts.received(event);
  if (concerned && to_.mode == Hook::Mode::loses_answers) return {0, 0, false, "the connection was reset"};
  return {204, 0, false, ""};
}

Attempt HookSink::judge(const core::StoredEvent& event, const sinks::HttpAnswer& answer, Time sent) {
  Attempt attempt = sinks::attempt_of("hook", answer, event.refusals);
  to_.oracle->note("hook answered " + std::to_string(answer.status) + " to " + event.stamp.id);
  const bool permanent = attempt.outcome == Outcome::permanent;
  if (answer.status == 204) {
    to_.receipts.acknowledged(event, sent);
  } else if (permanent && event.replay) {
    to_.receipts.refused_replay(event, sent);
  } else if (permanent) {
    to_.receipts.gave_up(event, sent);
  } else if (event.replay && attempt.outcome != Outcome::retry_sink && attempt.outcome != Outcome::disabled) {
    to_.receipts.replay_failed(event, answer.retry_after_ms);
  } else {
    to_.receipts.failed(event, answer.retry_after_ms);
  }
  if (answer.status == 410) {
    to_.disabled = true;
    to_.receipts.disturbed();
  }
  return attempt;
}

Task<Attempt> HookSink::send(core::StoredEvent event) {
  Open open(to_.receipts, event.key);
  to_.keys.insert(event.key);
  to_.oracle->sent("hook", event);
  const bool concerned = (to_.only_key.empty() || to_.only_key == event.key) && to_.chance(to_.share);
  co_await wait_for(concerned && to_.mode == Hook::Mode::hangs ? Duration(20s) : to_.latency());
  const auto result = answer(event, concerned);
  open.answered();
  co_return judge(event, result, open.begun);
}

class LogSink final : public core::Sink {
 public:
  explicit LogSink(LogFile& to) : to_(to) {}
  core::RetryPolicy policy() const override { return {true, {}, 256}; }
  Task<Status> start() override { co_return Status{}; }
  Task<Attempt> send(core::StoredEvent event) override {
    Open open(to_.receipts, event.key);
    co_await wait_for(to_.latency());
    open.answered();
    if (to_.write_fails) {
      to_.receipts.endpoint_failed();
      co_return Attempt{Outcome::retry_sink, "no space left on device", 0};
    }
    to_.oracle->sent(to_.receipts.name(), event);
    to_.receipts.received(event);
    to_.receipts.acknowledged(event, open.begun);
    co_return Attempt{};
  }
  Task<Status> flush() override {
    const auto lines = to_.receipts.lines();
    co_await wait_for(to_.latency());
    if (to_.flush_fails) {
      to_.receipts.flush_failed();
      to_.receipts.rewound();
      co_return fail(Code::unavailable, "input/output error");
    }
    to_.receipts.flush_succeeded();
    to_.flushed = std::max(to_.flushed, lines);
    co_return Status{};
  }
  Task<void> stop() override { co_return; }
  std::string describe() const override { return "simulated file"; }

 private:
  LogFile& to_;
};

}  // namespace

std::unique_ptr<core::Sink> Stream::connect() { return std::make_unique<StreamSink>(*this); }
std::unique_ptr<core::Sink> Hook::connect() { return std::make_unique<HookSink>(*this); }
std::unique_ptr<core::Sink> LogFile::connect() { return std::make_unique<LogSink>(*this); }

}  // namespace driftd::sim
