// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/redact_rule.hpp"
#include "core/redaction_key.hpp"
#include "core/resource.hpp"
#include "core/value/schema.hpp"

namespace driftd::core {

/// Revision of the normal forms. Digests of another revision get a new baseline silently.
inline constexpr int kNormaliserRevision = 1;
/// Revision of digests inside lists with keys and lists without order. Before revision 2 they were bound to the index
/// of the element. The schema alone selects this revision: if a value could, it could hide a change.
inline constexpr int kElementRevision = 2;

/// A keyed digest in a body: {"$hmac": "<key id>:<normaliser revision>:<64 hex>"}. With the suffix `:withheld` it is
/// the digest of a value that is known neither as a secret nor as harmless (ADR 0013).
struct DigestRef {
  std::string key_id;
  int revision = 0;
  std::string hex;
  bool withheld = false;
  friend bool operator==(const DigestRef&, const DigestRef&) = default;
};
/// Parses `value` as a digest. Empty if it is not one.
std::optional<DigestRef> as_digest(const Value& value);

/// Returns true if `value` is a digest or contains one.
bool contains_digest(const Value& value);
/// Returns true if a part of `value` is not what the system has: a digest, also one in a form that no digest of ours
/// has, or `[REDACTED]`. Such a value is never written into a system.
bool holds_withheld(const Value& value);
/// Returns true if the JSON text is the digest of a secret. A digest that is only withheld (ADR 0013) does not count.
bool is_of_secret(const std::optional<std::string>& json);

class Disclosure;

/// Worker side: replaces each value that the schema calls sensitive or write_only, or that `sensitive` names, by the
/// digest of its normal form, and then each value that `disclosure` does not show (nullptr: it shows everything). An
/// object of the plugin that looks like a digest is replaced, too. Absent and null values stay. Members that count as
/// others (`into`) are moved there before. Returns the canonical
/// body, or `corrupt` if the body is not a JSON object.
Result<std::string> redact(std::string_view body, const ResourceId& id, const KindSchema& schema,
                           const std::vector<std::string>& sensitive, const RedactionKey& worker_key,
                           const Disclosure* disclosure = nullptr);

/// Returns the digest that a sealed body has in place of `value`, a clear-text value without digests at `path`; in
/// lists with keys the path names elements by key. Returns `unavailable` only if a slow layer fails.
Result<Value> sealed_digest(const Value& value, const ResourceId& id, const Path& path, const KindSchema& schema,
                            const RedactionKeys& keys, bool withheld);

/// Agent side: replaces each worker digest w by HMAC(K_store, w) with all layers around it. Returns canonical JSON.
Result<std::string> seal(std::string_view body, const RedactionKey& store_key);

/// Adds the missing layers to digests from before a key rotation. Digests under other keys stay. Equal values stay
/// equal, different ones stay different. Returns canonical JSON.
Result<std::string> rewrap(std::string_view json, const RedactionKeys& keys);
Result<bool> rewrap(Value& value, const RedactionKeys& keys);  ///< returns true if anything was changed

/// Renders a value for people and sinks: each digest becomes "[REDACTED]".
std::string presentable(const Value& value);
std::string presentable_json(std::string_view json);  ///< "[REDACTED]" if the text is not valid JSON

}  // namespace driftd::core
