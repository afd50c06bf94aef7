// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "postgres/client.hpp"
#include "postgres/database_schedule.hpp"
#include "postgres/mapping.hpp"
#include "postgres/queries.hpp"

namespace driftd::postgres {

/// One kind as the server has it now. `missing`: not all of it could be seen, for these reasons.
struct Listing {
  Records records;
  std::vector<sdk::Failure> missing;
};

/// The system_identifier that a cursor of Reader::cursor() was made on; empty: none is in it.
std::string system_of(const std::string& cursor);

/// Reads kinds through one client, and those of further databases through one connection after the other. Lives for one
/// call.
class Reader {
 public:
  /// `kinds`: those that will be asked for. `schedule`: those of this server's databases.
  Reader(sdk::Call& call, Client& client, const Settings& settings, std::vector<std::string> kinds,
         DatabaseSchedule& schedule);

  /// The server's system_identifier; empty: it may not be read.
  const std::string& system();

  /// A failure that concerns only this kind is in `missing`; any other is thrown.
  Listing list(const std::string& kind);

  /// Why a listing without this id does not tell that it is gone; empty: it does. After list().
  std::string unseen_reason(const std::string& kind, const std::string& id) const;

  /// Equal to that of an earlier call: nothing that we read has changed since. Empty: cannot be told.
  std::string cursor();

  /// Which transactions had ended as cursor() was asked for: the same later means that none has since.
  const std::string& snapshot() const { return snapshot_; }

 private:
  std::string hashes();
  Listing list_of_server(const std::string& kind);
  Records map(const std::string& kind, const Rows& rows) const;
  void check_same_system(Client& client, std::chrono::milliseconds timeout);
  using Time = std::chrono::steady_clock::time_point;
  /// When what begins now has used up this part of the time that the call has left.
  Time deadline_for(double part) const;
  void walk();
  void list_database(Client& client, const std::string& database, Time end);
  void list_kind(Client& client, const std::string& database, const std::string& kind, Time end);
  void fail_all_kinds(const sdk::Failure& failure);
  /// Runs `each` with a connection to this database. What fails there and says nothing about others is the answer.
  std::optional<sdk::Failure> in_database(const std::string& database, Time end,
                                          const std::function<void(Client&)>& each);
  std::vector<std::string> databases();  ///< to be walked

  sdk::Call& call_;
  Client& client_;
  const Settings& settings_;
  DatabaseSchedule& schedule_;
  const std::vector<std::string> kinds_;
  std::vector<std::string> database_kinds_;      ///< those of kinds_ that every database has of its own
  std::map<std::string, std::string> left_out_;  ///< database that is there and is not walked → why
  Rights rights_;
  bool walked_ = false;
  std::optional<std::string> system_;
  std::string snapshot_;
  std::map<std::string, Listing> of_databases_;
};

}  // namespace driftd::postgres
