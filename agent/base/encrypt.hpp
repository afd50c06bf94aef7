// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/result.hpp"

namespace driftd {

/// AES-256-GCM: nobody without `key` reads the text, or makes another one that decrypt() takes. `about` is not kept,
/// and must be the same again: what was encrypt for one place is nothing in another. The nonce is random: with one
/// key at most 2^32 texts. Raw bytes, 29 more than the text: a version, the nonce, the tag, the text. An error: of the
/// system's random bytes or memory.
Result<std::string> encrypt(const Key& key, std::string_view about, std::string_view text);
/// Nothing: another key, another `about`, another version, or damage; which one cannot be told.
std::optional<std::string> decrypt(const Key& key, std::string_view about, std::string_view bytes);

}  // namespace driftd
