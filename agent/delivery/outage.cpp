// SPDX-License-Identifier: Apache-2.0
#include "delivery/outage.hpp"

#include <algorithm>
#include <cstdlib>

namespace driftd::delivery {
namespace {

constexpr const char* kNote = "failing_ms";
constexpr const char* kFormerNote = "failing_since_ns";  // written by older versions: a wall-clock time
constexpr Millis kWriteAnew = std::chrono::minutes(10);

}  // namespace

void Outage::restore(std::map<std::string, std::string>& notes) {
  notes.erase(kFormerNote);
  const auto found = notes.find(kNote);
  if (found == notes.end()) return;
  lasted_ = noted_ = Millis(std::max(0LL, std::strtoll(found->second.c_str(), nullptr, 10)));
}

void Outage::failed(Time now, std::map<std::string, std::string>& notes) {
  if (last_) lasted_ += std::chrono::duration_cast<Millis>(now - *last_);
  last_ = now;
  if (notes.contains(kNote) && lasted_ - noted_ < kWriteAnew) return;
  noted_ = lasted_;
  notes[kNote] = std::to_string(lasted_.count());
}

void Outage::over(std::map<std::string, std::string>& notes) {
  notes.erase(kNote);
  *this = Outage();
}

}  // namespace driftd::delivery
