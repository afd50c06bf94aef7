// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/patience.hpp"

namespace driftd::test {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr std::size_t kMostAtOnce = 100;  // changes of one apply, after the machine stood still
const std::string kSubject = "platform/instance/kafka_topic.r";

}  // namespace

StateWriter::StateWriter(std::string state, std::string lines, int per_second)
    : state_(std::move(state)),
      per_second_(per_second),
      lines_path_(std::move(lines)),
      values_(kResources, 1),
      arrived_(kResources, 1) {
  replace();
}

void StateWriter::start() {
  begun_ = moved_ = Clock::now();
  thread_ = std::thread([this] { work(); });
}

void StateWriter::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::size_t StateWriter::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

bool StateWriter::wait_for(std::size_t more) const {
  std::unique_lock lock(mutex_);
  const std::size_t until = count_ + more;
  return changed_.wait_for(lock, std::chrono::minutes(1) * kPatience, [&] { return count_ >= until; });
}

Written StateWriter::written() const {
  const std::lock_guard lock(mutex_);
  Written out;
  for (std::size_t i = 0; i < values_.size(); ++i) out[kSubject + std::to_string(i)] = values_[i];
  return out;
}

double StateWriter::per_second() const {
  const std::lock_guard lock(mutex_);
  return static_cast<double>(count_) / std::chrono::duration<double>(worked_).count();
}

double StateWriter::held_seconds() const {
  const std::lock_guard lock(mutex_);
  return std::chrono::duration<double>(held_).count();
}

void StateWriter::work() {
  for (auto due = begun_ + kTick;; due += kTick) {
    {
      std::unique_lock lock(mutex_);
      worked_ = Clock::now() - begun_;
      if (changed_.wait_until(lock, due, [this] { return stopping_; })) return;
    }
    read_lines();
    const std::chrono::duration<double> since = Clock::now() - begun_;
    change(static_cast<std::size_t>(since.count() * per_second_));
  }
}

/// Makes as many changes as are missing to `due` in all, in one new state.
void StateWriter::change(std::size_t due) {
  const std::size_t before = count_;
  {
    const std::lock_guard lock(mutex_);
    while (count_ < due && count_ - before < kMostAtOnce) {
      const std::size_t next = count_ % values_.size();
      if (arrived_[next] < values_[next]) break;
      ++values_[next];
      ++count_;
    }
    const auto now = Clock::now();
    if (count_ < due && count_ == before) held_ = std::max(held_, now - moved_);
    if (count_ != before || count_ >= due) moved_ = now;
  }
  if (count_ != before) replace();
  changed_.notify_all();
}

void StateWriter::read_lines() {
  if (!lines_.is_open()) lines_.open(lines_path_, std::ios::binary);
  lines_.clear();  // of the end that was reached before
  char buffer[65536];
  while (lines_.read(buffer, sizeof buffer), lines_.gcount() > 0) {
    rest_.append(buffer, static_cast<std::size_t>(lines_.gcount()));
  }
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto event = nlohmann::json::parse(rest_.substr(begin, end - begin), nullptr, false);
    const std::string subject = event.is_object() ? event.value("subject", "") : "";
    if (!subject.starts_with(kSubject)) continue;
    const auto& changes = event.at("data").at("changes");
    if (changes.empty()) continue;
    int& arrived = arrived_.at(std::stoul(subject.substr(kSubject.size())));
    arrived = std::max(arrived, std::stoi(changes.at(0).value("new_value", "0")));
  }
  rest_.erase(0, begin);
}

void StateWriter::replace() {
  ++serial_;
  std::string text = R"({"version":4,"terraform_version":"1.9.0","serial":)" + std::to_string(serial_) +
                     R"(,"lineage":"kills","outputs":{},"resources":[)";
  for (std::size_t i = 0; i < values_.size(); ++i) {
    text += std::string(i == 0 ? "" : ",") + R"({"mode":"managed","type":"kafka_topic","name":"r)" + std::to_string(i) +
            R"(","provider":"p","instances":[{"attributes":{"partitions":)" + std::to_string(values_[i]) + "}}]}";
  }
  {
    std::ofstream out(state_ + ".next", std::ios::trunc | std::ios::binary);
    out << text << "]}";
    if (!out.flush()) throw std::runtime_error("cannot write " + state_);
  }
  std::filesystem::rename(state_ + ".next", state_);
}

}  // namespace driftd::test
