// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driftd/consumer/backend.hpp"

namespace driftd::consumer {

/// A place of a pattern that needs a backend.
struct SlotBinding {
  std::string slot;                     ///< `state_store`; unique in a pattern
  std::string backend;                  ///< the backend that is used if it can be
  std::string slot_type;                ///< the application's own word for what it needs (`keyvalue`); may be empty
  std::vector<std::string> alternates;  ///< backends to use, in this order, while `backend` is down or refuses
};

/// One connection of a slot to its backend. The application implements it. The library calls each object from one
/// thread at a time, while the application's threads use it: the object guards itself.
class Slot {
 public:
  virtual ~Slot() = default;
  /// Takes other credentials for what it opens from now on, and for open connections if its protocol can. An error
  /// makes the library connect all slots of that backend again. Must end within seconds.
  virtual Status update_credentials(const SlotConfig& config) = 0;
  /// Ends the connection. The object was replaced before, so no new user comes; operations that run may end first. Must
  /// not block for longer than seconds and must not throw.
  virtual void disconnect() = 0;
};

/// Connects slots. The application implements it. Called from several threads at once.
class SlotFactory {
 public:
  virtual ~SlotFactory() = default;
  /// Connects a slot and returns it when it is ready for use. It should refuse a server that has the wrong role for the
  /// slot (a replica for a slot that writes): the next alternate is tried then. Must end within seconds.
  virtual Result<std::shared_ptr<Slot>> connect(const SlotBinding& binding, const SlotConfig& config) = 0;
};

}  // namespace driftd::consumer
