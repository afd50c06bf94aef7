// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "terraform/spool.hpp"

namespace driftd::terraform {

/// What a state says of itself.
struct Head {
  int version = 0;  ///< of the format, 1 to 4; 0 with `encrypted`
  std::string lineage, serial = "0", terraform_version;
  bool encrypted = false;  ///< by OpenTofu: lineage and serial are all that is known
  std::uint64_t managed = 0, deposed = 0, data = 0, outputs = 0;
  std::map<std::string, std::uint64_t> checks;  ///< status of `check_results` → how many
  std::vector<std::string> failing;             ///< addresses of checks that fail, at most 20
  /// of instances and outputs, 16 hex digits: equal states differ in no resource. Empty: encrypted
  std::string digest;
};

/// One object of a managed resource. Everything is borrowed for the call that it was given to.
struct Instance {
  const nlohmann::json& resource;    ///< module, mode, type, name, provider
  const nlohmann::json& object;      ///< of `instances`, in the form of v4
  const nlohmann::json& attributes;  ///< an object; of older formats a flat one (`tags.%`)
  std::string type, address;         ///< `module.m.kafka_topic.t["k"]`, without what is deposed
  std::string deposed;               ///< key of a deposed object; empty: the current one
  /// The address, and ` (deposed 12ab34cd)` behind it.
  std::string id() const;
};

/// What a reader of a state is told; false ends it. Data sources are passed over.
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  virtual bool instance(const Instance& instance) = 0;
  virtual bool output(const std::string& name, const nlohmann::json& output) = 0;
};

/// Reads the whole state once and checks it: what it says afterwards is whole. Throws sdk::Failure: CORRUPT with line
/// and column or with the place (no JSON, cut off, empty, no lineage, an unknown mode, an instance twice), UNSUPPORTED
/// (a format that is unknown).
Head read_head(const Spool& state);
/// Lineage and serial from the first bytes of a state, as far as they stand there; for health. Never throws.
Head peek(std::string_view beginning);

/// Reads every instance and output. Nothing of an encrypted one. Throws as read_head.
void read_contents(const Spool& state, const Head& head, StateVisitor& to);

/// The parts of formats v1 to v3; see state_legacy.cpp.
void legacy_head(const nlohmann::json& document, Head& out);
void legacy_contents(const nlohmann::json& document, StateVisitor& to);

/// A member that is text; empty when it is absent or something else.
std::string text_of(const nlohmann::json& object, const char* key);

}  // namespace driftd::terraform
