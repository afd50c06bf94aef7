// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postgres/client.hpp"
#include "postgres/mapping.hpp"
#include "postgres/queries.hpp"

namespace driftd::postgres {

/// One kind as the server has it now. `missing`: not all of it could be seen, for want of this right.
struct Listing {
  Records records;
  std::string missing;
};

/// Reads kinds through one client. Lives for one call.
class Reader {
 public:
  /// Asks for our rights. Throws sdk::Failure.
  Reader(sdk::Call& call, Client& client, const Settings& settings);
  const Rights& rights() const { return rights_; }
  Listing list(std::string_view kind);
  /// The state of the catalogue as a cursor (JSON): equal cursors, nothing changed. Empty when a wanted kind cannot be
  /// read whole, so that its missing right is named again in each cycle.
  std::string cursor(const std::vector<std::string>& kinds);

 private:
  sdk::Call& call_;
  Client& client_;
  const Settings& settings_;
  Rights rights_;
};

}  // namespace driftd::postgres
