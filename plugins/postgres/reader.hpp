// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "postgres/client.hpp"
#include "postgres/database_schedule.hpp"
#include "postgres/guc_types.hpp"
#include "postgres/mapping.hpp"
#include "postgres/queries.hpp"

namespace driftd::postgres {

/// All records of one kind. `missing` holds the reasons if the list is incomplete.
struct Listing {
  Records records;
  std::vector<sdk::Failure> missing;
};

/// Returns the system_identifier in a cursor of Reader::cursor(); empty if it holds none.
std::string system_of(const std::string& cursor);

/// Reads kinds through one client, and the kinds of further databases through one connection after the other. Lives for
/// one call.
class Reader {
 public:
  /// `kinds` are those that will be read. `schedule` is that of this server's databases.
  Reader(sdk::Call& call, Client& client, const Settings& settings, std::vector<std::string> kinds,
         DatabaseSchedule& schedule);

  /// Returns the server's system_identifier; empty if we have no right to read it.
  const std::string& system();

  /// Returns how the server reads settings: no types if pg_settings may not be read. Empty if none of the kinds has
  /// settings.
  std::optional<GucTypes> guc_types();

  /// Lists a kind. A failure that concerns only this kind is in `missing`; any other is thrown.
  Listing list(const std::string& kind);

  /// Returns why the absence of this id from the list does not prove that it is gone; empty if it does. Call after
  /// list().
  std::string unseen_reason(const std::string& kind, const std::string& id) const;

  /// Returns a text that is equal to that of an earlier call only if nothing that we read has changed since; empty if
  /// that cannot be told.
  std::string cursor();

  /// Returns which transactions had ended when cursor() ran: the same value later means that none has ended since.
  const std::string& snapshot() const { return snapshot_; }

 private:
  std::string hashes();
  Listing list_of_server(const std::string& kind);
  Records map(const std::string& kind, const Rows& rows) const;
  Records ident(const Rows& rows) const;
  void check_same_system(Client& client, std::chrono::milliseconds timeout);
  using Time = std::chrono::steady_clock::time_point;
  /// Returns the time at which this part of the remaining time of the call is used up.
  Time deadline_for(double part) const;
  void walk();
  void list_database(Client& client, const std::string& database, Time end);
  void list_kind(Client& client, const std::string& database, const std::string& kind, Time end);
  void fail_all_kinds(const sdk::Failure& failure);
  /// Runs `each` with a connection to this database. Returns the failure if it concerns only this database.
  std::optional<sdk::Failure> in_database(const std::string& database, Time end,
                                          const std::function<void(Client&)>& each);
  std::vector<std::string> databases();  ///< databases to read

  sdk::Call& call_;
  Client& client_;
  const Settings& settings_;
  DatabaseSchedule& schedule_;
  const std::vector<std::string> kinds_;
  std::vector<std::string> database_kinds_;      ///< those of kinds_ that exist in every database
  std::map<std::string, std::string> left_out_;  ///< existing database that is not read → reason
  Rights rights_;
  bool walked_ = false;
  std::optional<std::string> system_;
  std::string snapshot_;
  std::map<std::string, Listing> of_databases_;
};

}  // namespace driftd::postgres
