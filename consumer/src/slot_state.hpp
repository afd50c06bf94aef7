// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "slot_keeper.hpp"

namespace driftd::consumer {

struct SlotKeeper::State {
  State(SlotBinding slot_binding, Backoff slot_backoff) : binding(std::move(slot_binding)), backoff(slot_backoff) {}
  const SlotBinding binding;
  std::shared_ptr<Slot> live;
  std::string backend;  ///< of `live`
  SlotConfig config;    ///< that `live` uses
  unsigned needs = kNothing;
  Time due = Time::max();
  Time rotated_at{};          ///< when the last event about a credential came
  bool running = false;       ///< a thread of the keeper attends to it
  unsigned doing = kNothing;  ///< the needs that it attends to
  Backoff backoff;
  std::string last_error;
  Time connected_at{};
};

}  // namespace driftd::consumer
