// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/digest.hpp"

namespace driftd::core {

/// The function of a layer: HMAC with its key, or scrypt with its key as salt (50 ms, core/slow_digest.hpp).
enum class LayerKind : std::uint8_t { hmac, slow };

/// A key that a key rotation added as a layer around the stored digests.
struct KeyLayer {
  std::string id;  ///< 8 hex
  Key key{};
  LayerKind kind = LayerKind::hmac;
};

/// The key of one of the two steps of semantics 19, with its id. The store's step is a chain: a rotation cannot compute
/// digests again, because nobody has the values, so it adds a layer around the stored ones (ADR 0014).
struct RedactionKey {
  std::string id;  ///< 8 hex
  Key key{};
  std::vector<KeyLayer> layers{};  ///< only for the store's step; oldest first

  /// The id that digests carry.
  const std::string& newest_id() const { return layers.empty() ? id : layers.back().id; }
  /// The newest key. It cannot be derived from an older key file.
  const Key& newest() const { return layers.empty() ? key : layers.back().key; }
  /// Returns true if a layer is slow: a digest that this process has not computed yet then costs 50 ms, so none may be
  /// computed on the core thread.
  bool slow() const;
};

/// The keys of both steps. With them the agent can tell whether a digest is the one of a value that it has in clear
/// text.
struct RedactionKeys {
  RedactionKey worker, store;
};

}  // namespace driftd::core
