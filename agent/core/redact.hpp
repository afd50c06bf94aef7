// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "core/resource.hpp"
#include "core/value/schema.hpp"

namespace driftd::core {

/// Revision of the normal forms; digests of another one re-baseline silently.
inline constexpr int kNormaliserRevision = 1;
/// Of digests below lists by keys and lists without order: until 2 they were of the element's place. It goes by the
/// schema alone: a revision that a value could choose would let it hide a change.
inline constexpr int kElementRevision = 2;

/// A keyed digest in a body stands as {"$hmac": "<key id>:<normaliser revision>:<64 hex>"}; with `:withheld` behind it,
/// it is of a value that nobody calls a secret, or harmless (ADR 0013).
struct DigestRef {
  std::string key_id;
  int revision = 0;
  std::string hex;
  bool withheld = false;
  friend bool operator==(const DigestRef&, const DigestRef&) = default;
};
/// The digest that `value` stands for, if it is one.
std::optional<DigestRef> as_digest(const Value& value);

/// It is one, or has one in it.
bool contains_digest(const Value& value);

/// What a layer makes of a digest: HMAC with its key, or scrypt with its key for salt (50 ms, core/slow_digest.hpp).
enum class LayerKind : std::uint8_t { hmac, slow };

/// A key that a rotation put around the store's.
struct KeyLayer {
  std::string id;  ///< 8 hex
  Key key{};
  LayerKind kind = LayerKind::hmac;
};

/// Key of one of the two steps of semantics 19 with its id. The store's step is a chain: a rotation cannot make digests
/// anew, for nobody has the values, so it puts a layer around those that are stored (ADR 0014).
struct RedactionKey {
  std::string id;  ///< 8 hex
  Key key{};
  std::vector<KeyLayer> layers{};  ///< of the store's step alone, oldest first

  const std::string& newest_id() const { return layers.empty() ? id : layers.back().id; }  ///< digests carry it
  /// Whoever knows only a former key file does not know this one.
  const Key& newest() const { return layers.empty() ? key : layers.back().key; }
  /// A digest that this process has not made yet costs 50 ms: none is made on the core thread.
  bool slow() const;
};

/// Both steps: with them the agent can tell whether a digest is of a value that it knows in clear.
struct RedactionKeys {
  RedactionKey worker, store;
};

/// Where a provider's records hold values that the system gives no meaning to: globs over kinds, ids and paths.
struct FreeForm {
  std::string kind, id, path;  ///< an empty id: every
};
/// A line of the configuration's `redact:`; the first one that matches counts.
struct RedactRule {
  bool show = false;
  std::string path;  ///< glob over paths, or over names where it is one segment
  friend bool operator==(const RedactRule&, const RedactRule&) = default;
};
class Disclosure;

/// Worker side: replaces each value that the schema calls sensitive or write_only, or that `sensitive` names, by the
/// digest of its normal form; an object of the plugin that looks like a digest is digested too. Then what `disclosure`
/// does not show; nullptr: it shows everything. Absent and null stay. Returns the canonical body. `corrupt` when the
/// body is no JSON object.
Result<std::string> redact(std::string_view body, const ResourceId& id, const KindSchema& schema,
                           const std::vector<std::string>& sensitive, const RedactionKey& worker_key,
                           const Disclosure* disclosure = nullptr);

/// The digest that a sealed body holds in place of `value`, which stands in clear and without digests at `path`,
/// elements of lists by keys named by their keys. `unavailable`: of a slow layer alone.
Result<Value> sealed_digest(const Value& value, const ResourceId& id, const Path& path, const KindSchema& schema,
                            const RedactionKeys& keys, bool withheld);

/// Agent side: each worker digest w becomes HMAC(K_store, w), with each layer around it. Returns canonical JSON.
Result<std::string> seal(std::string_view body, const RedactionKey& store_key);

/// A JSON text with digests of before a rotation, as it would be with those layers that came since; what stands under
/// other keys stays. Equal values stay equal, others stay different. Returns canonical JSON.
Result<std::string> rewrap(std::string_view json, const RedactionKeys& keys);
Result<bool> rewrap(Value& value, const RedactionKeys& keys);  ///< whether anything was of before

/// For people and sinks: each digest becomes "[REDACTED]".
std::string presentable(const Value& value);
std::string presentable_json(std::string_view json);  ///< unparsable text gives "[REDACTED]"

}  // namespace driftd::core
