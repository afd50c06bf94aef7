// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terraform/document.hpp"
#include "terraform/spool.hpp"

namespace driftd::terraform {

/// Header and summary of a state.
struct Head {
  int version = 0;                                       ///< format version, 1 to 4; 0 if `encrypted`
  std::string lineage, serial = "0", terraform_version;  ///< the serial's digits as in the file
  bool encrypted = false;                                ///< encrypted by OpenTofu: only lineage and serial are known
  std::uint64_t managed = 0, deposed = 0, data = 0, outputs = 0;  ///< how many of each the state holds
  std::map<std::string, std::uint64_t> checks;                    ///< status of `check_results` → how many
  std::vector<std::string> failing;                               ///< addresses of checks that fail, at most 20
  /// hash of the texts of instances and outputs, 16 hex digits: equal digests mean equal resources. Empty: encrypted
  std::string digest;
  std::shared_ptr<const Outline> outline;  ///< what read_contents() need not scan again; a shortcut, may be null
};

/// One object of a managed resource, of any format. All views and references are borrowed for the call that gets it.
class Instance {
 public:
  /// Throws CORRUPT with the address if a member has an unexpected form. `text` may not be split again: its parts are
  /// used as they are.
  Instance(const Resource& resource, const InstanceText& text);

  /// The same for an older format, where the attributes are a tree already; `text` has them rendered.
  Instance(const Resource& resource, const InstanceText& text, nlohmann::json tree);

  /// Returns the address, followed by ` (deposed 12ab34cd)` for a deposed object.
  std::string id() const;
  /// Returns the attributes as a tree, see tree.hpp. It is built at the first call.
  const nlohmann::json& tree() const;
  /// Returns true if the text of the attributes may be passed on as it is: it does not nest too deep, and no key stands
  /// twice in an object.
  bool is_plain() const;

  const Resource& resource;
  const std::string& type;      ///< of the resource
  std::string address;          ///< `module.m.kafka_topic.t["k"]`, without the deposed key
  std::string deposed, status;  ///< key of a deposed object; empty: the current one. `tainted` or empty
  std::string_view attributes;  ///< text of an object
  bool flat = true;             ///< not the form of v4: in older formats and for some instances `tags.%`
  AttributeTraits traits;       ///< of the attributes
  std::string_view sensitive;   ///< text of `sensitive_attributes`; empty: there is no such member

 private:
  mutable std::optional<nlohmann::json> tree_;
  mutable std::optional<bool> plain_;
};

/// Receives the contents of a state, without data sources; returning false ends the reading.
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  virtual bool instance(const Instance& instance) = 0;
  /// `output` is a tree, see tree.hpp.
  virtual bool output(const std::string& name, const nlohmann::json& output) = 0;
};

/// Reads the whole state once and checks it. Throws CORRUPT with line and column or with the place (invalid JSON,
/// truncated, empty, no lineage, an unknown mode, a duplicate instance), UNSUPPORTED (unknown format).
Head read_head(const Spool& state);
/// Returns lineage and serial as far as the first bytes of a state hold them; for health. Never throws.
Head peek(std::string_view beginning);

/// Reads every instance and output; nothing of an encrypted state. Throws like read_head().
void read_contents(const Spool& state, const Head& head, StateVisitor& to);

/// The same for formats v1 to v3; see state_legacy.cpp.
void legacy_head(const nlohmann::json& document, Head& out);
void legacy_contents(const nlohmann::json& document, StateVisitor& to);

/// Returns a text member; empty if it is absent or not a text.
std::string text_of(const nlohmann::json& object, const char* key);

}  // namespace driftd::terraform
