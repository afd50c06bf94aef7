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
  Time rotated_at{};          ///< when the last event about a credential came
  unsigned doing = kNothing;  ///< the needs that a thread attends to
  Backoff backoff;
  std::string last_error;
  Time connected_at{};
};

}  // namespace driftd::consumer
