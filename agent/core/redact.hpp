// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "core/resource.hpp"
#include "core/schema.hpp"

namespace driftd::core {

/// Revision of the normal forms; digests of another one re-baseline silently.
inline constexpr int kNormaliserRevision = 1;

/// A keyed digest in a body stands as {"$hmac": "<key id>:<normaliser revision>:<64 hex>"}.
struct DigestRef {
  std::string key_id;
  int revision = 0;
  std::string hex;
  friend bool operator==(const DigestRef&, const DigestRef&) = default;
};
/// The digest that `value` stands for, if it is one.
std::optional<DigestRef> as_digest(const Value& value);

/// Key of one of the two steps of semantics 19 with its id.
struct RedactionKey {
  std::string id;  ///< 8 hex
  Key key{};
};

/// Worker side: replaces each value that the schema calls sensitive or write_only, or that `sensitive` names, by the
/// digest of its normal form; an object of the plugin that looks like a digest is digested too. Absent and null stay.
/// Returns the canonical body. `corrupt` when the body is no JSON object.
Result<std::string> redact(std::string_view body, const ResourceId& id, const KindSchema& schema,
                           const std::vector<std::string>& sensitive, const RedactionKey& worker_key);

/// Agent side: each worker digest w becomes HMAC(K_store, w). Returns canonical JSON.
Result<std::string> seal(std::string_view body, const RedactionKey& store_key);

/// For people and sinks: each digest becomes "[REDACTED]".
std::string presentable(const Value& value);
std::string presentable_json(std::string_view json);  ///< unparsable text gives "[REDACTED]"

}  // namespace driftd::core
