// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/result.hpp"

namespace driftd {

/// Encrypts with AES-256-GCM: without `key` nobody can read the text or make another one that decrypt() accepts.
/// `associated` is AES-GCM's associated data: authenticated but not stored; decrypt() needs the same, so that a text
/// that was encrypted for one place is not valid in another. The nonce is random, so one key may encrypt at most 2^32
/// texts. Returns raw bytes, 29 more than the text: version, nonce, tag, text. Fails if the system gives no random
/// bytes or no memory.
Result<std::string> encrypt(const Key& key, std::string_view associated, std::string_view text);
/// Returns the text. Empty if key, `associated` or version differ or the bytes are damaged; these cannot be told apart.
/// `bytes` are those of encrypt(). It never returns a part of the text.
std::optional<std::string> decrypt(const Key& key, std::string_view associated, std::string_view bytes);

}  // namespace driftd
