// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "ledger.hpp"
#include "support/agent.hpp"
#include "support/nats.hpp"
#include "writer.hpp"

namespace driftd::test {

/// Returns the number in an environment variable, or `fallback` if it is not set.
int number_from_env(const char* variable, int fallback);

/// Returns the value below which `part` of the values are (nearest rank). The vector must not be empty.
double percentile(std::vector<double> values, double part);

/// A writer at 200 changes a second, an agent that reads its state, a NATS server and a file. The agent has further
/// sinks as the test says.
class KillWorld {
 public:
  static constexpr int kPerSecond = 200;

  /// `head` stands before the backends (a section `grpc:`, with SOCKET for the path of its socket), `sinks` are further
  /// sinks.
  KillWorld(const std::string& head, const std::string& sinks, std::map<std::string, std::string> env = {});

  /// Starts the agent. Returns the seconds until /readyz says yes; nothing if it does not within 20 s.
  std::optional<double> start_until_ready();
  /// Starts the agent and does not wait.
  void start();
  /// Kills the agent with SIGKILL: the process alone, as the kernel does when memory runs out, or with its workers.
  void kill(bool with_workers);
  /// Waits until `got()` has every change that was written. Returns its result, complete or not, and expects that it
  /// is.
  template <class Get>
  Deliveries complete(const std::string& name, const Get& got, std::chrono::seconds max_wait) const {
    Deliveries out;
    std::string missing;
    EXPECT_TRUE(eventually([&] { return (missing = lost(writer.written(), out = got())).empty(); }, max_wait))
        << name << ": " << missing << end_of_log();
    return out;
  }
  std::string end_of_log() const;
  /// In a folder of its own: a worker may not read folders around the agent's own files, only the state itself then,
  /// and must be started again for each replaced state.
  std::string lines() const { return dir.file("events.jsonl"); }
  std::string socket() const { return dir.file("grpc.sock"); }

  TempDir dir;
  /// Apart from the agent's own files: of a folder below theirs, a worker may read only the state itself, and another
  /// worker must start for each state that replaces it.
  TempDir states;
  NatsServer nats;
  StateWriter writer;
  Agent agent;
  Runs runs;
  std::vector<std::size_t> file_sizes;  ///< of each run that has ended
};

}  // namespace driftd::test
