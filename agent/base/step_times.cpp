// SPDX-License-Identifier: Apache-2.0
#include "base/step_times.hpp"

#include <algorithm>
#include <utility>

namespace driftd {
namespace {

std::string milliseconds(std::chrono::steady_clock::duration took) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
}

}  // namespace

void StepTimes::end(const std::string& name) {
  const auto now = Clock::now();
  const auto took = now - std::exchange(last_, now);
  const auto known = std::find_if(steps_.begin(), steps_.end(), [&](const Step& step) { return step.name == name; });
  if (known != steps_.end()) {
    known->took += took;
  } else {
    steps_.push_back({name, took});
  }
}

std::string StepTimes::render() const {
  std::string steps;
  for (const auto& step : steps_) steps += (steps.empty() ? ": " : ", ") + step.name + " " + milliseconds(step.took);
  return milliseconds(last_ - begun_) + " ms" + steps;
}

}  // namespace driftd
