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

/// What all records of one reading of a state share.
struct Reading {
  Head head;                                      ///< header and summary of the state
  std::int64_t sent_ns = 0;                       ///< wall clock when the request was sent
  std::int64_t lock_age_s = -1;                   ///< −1: not locked, or not reported
  std::uint64_t size = 0;                         ///< bytes
  std::string history;                            ///< "tampered", "rolled back", or empty
  std::map<std::string, std::string> provenance;  ///< run_id, run_status, state_version …
};

/// Returns the `state` record. Of an encrypted state everything but lineage and serial is unread.
sdk::Record state_record(const Reading& reading);
/// Returns an `instance` record. Its body is the JSON text of the file, so no number passes through a double.
sdk::Record instance_record(const Reading& reading, const Instance& instance, const Settings& settings);
/// Returns an `output` record. Its value is sensitive if the state marks it or its name suggests a secret.
sdk::Record output_record(const Reading& reading, const std::string& name, const nlohmann::json& output);
/// Returns what an instance declares of a resource of another backend, in the form of that backend's provider.
sdk::Record declared_record(const Reading& reading, const Instance& instance, const Declaration& declared,
                            const std::string& backend);
/// Returns a record with the fields that all records of a reading have.
sdk::Record base_record(const Reading& reading, std::string kind, std::string id);

/// Returns "tampered" if the serial and lineage are the same but resources differ, "rolled back" if the serial is
/// lower, else empty; also empty if that cannot be determined (nothing known before, encrypted).
std::string history_of(const Head& before, const Head& now);

}  // namespace driftd::terraform
