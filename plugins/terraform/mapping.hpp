// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "driftd/sdk/types.hpp"
#include "terraform/declare.hpp"
#include "terraform/settings.hpp"
#include "terraform/state.hpp"

namespace driftd::terraform {

/// One reading of a state: what is true of all its records.
struct Reading {
  Head head;
  std::int64_t sent_ns = 0;                       ///< wall clock when the request was sent
  std::int64_t lock_age_s = -1;                   ///< −1: not locked, or the backend does not tell
  std::uint64_t size = 0;                         ///< bytes
  std::string history;                            ///< "tampered", "rolled back", or empty: as it should be
  std::map<std::string, std::string> provenance;  ///< run_id, run_status, state_version …
};

/// The one `state` record. Of an encrypted state all but lineage and serial is unread.
sdk::Record state_record(const Reading& reading);
/// An `instance`. Its body is the file's own JSON text: no number passes through a double.
sdk::Record instance_record(const Reading& reading, const Instance& instance, const Settings& settings);
sdk::Record output_record(const Reading& reading, const std::string& name, const nlohmann::json& output);
/// What an instance says of a resource of another backend, as that one's provider would show it.
sdk::Record declared_record(const Reading& reading, const Instance& instance, const Declaration& declared,
                            const std::string& backend);
/// What every record of a reading has.
sdk::Record base_record(const Reading& reading, std::string kind, std::string id);

/// "tampered": the same serial of the same lineage with other resources. "rolled back": a lower serial. Empty: neither,
/// or it cannot be told (nothing known before, encrypted).
std::string history_of(const Head& before, const Head& now);

}  // namespace driftd::terraform
