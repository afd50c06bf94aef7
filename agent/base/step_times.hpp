// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace driftd {

/// How long the steps of a start take, for a line of the log. Not thread-safe.
class StepTimes {
 public:
  /// The step that ends now and began with the end of the step before, or with this object. The same name twice is one
  /// step.
  void end(const std::string& name);
  /// Returns all steps in their order, as `812 ms: configuration 3, store 640, plugins 169`.
  std::string render() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Step {
    std::string name;
    Clock::duration took;
  };

  Clock::time_point begun_ = Clock::now(), last_ = begun_;
  std::vector<Step> steps_;
};

}  // namespace driftd
