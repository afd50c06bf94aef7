// SPDX-License-Identifier: Apache-2.0
#include "core/slow_digest.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/slow_hash.hpp"

namespace driftd::core {
namespace {

constexpr std::size_t kMaxEntries = 131'072;  // about 12 MiB when full

std::string_view view(const Key& key) { return {reinterpret_cast<const char*>(key.data()), key.size()}; }

SlowDigests::Bytes bytes_of(const std::string& raw) {
  SlowDigests::Bytes out{};
  std::memcpy(out.data(), raw.data(), std::min(raw.size(), out.size()));
  return out;
}

}  // namespace

std::size_t SlowDigests::Hash::operator()(const Bytes& input) const {
  std::size_t out = 0;  // any part of a SHA-256 is a good hash
  std::memcpy(&out, input.data(), sizeof out);
  return out;
}

std::optional<SlowDigests::Bytes> SlowDigests::find(const Bytes& input) {
  const std::lock_guard lock(mutex_);
  if (const auto found = young_.find(input); found != young_.end()) return found->second;
  const auto found = old_.find(input);
  if (found == old_.end()) return std::nullopt;
  const Bytes digest = found->second;
  old_.erase(found);
  put_young(input, digest);
  return digest;
}

void SlowDigests::put(const Bytes& input, const Bytes& digest) {
  const std::lock_guard lock(mutex_);
  old_.erase(input);
  put_young(input, digest);
}

void SlowDigests::put_young(const Bytes& input, const Bytes& digest) {
  if (young_.size() >= half_) old_ = std::exchange(young_, Map{});
  young_.insert_or_assign(input, digest);
}

std::size_t SlowDigests::size() const {
  const std::lock_guard lock(mutex_);
  return young_.size() + old_.size();
}

Result<std::string> slow_hex(const Key& layer, const std::string& hex) {
  static SlowDigests known(kMaxEntries);
  const auto input = bytes_of(sha256(std::string(view(layer)) + hex));
  if (const auto digest = known.find(input))
    return to_hex({reinterpret_cast<const char*>(digest->data()), digest->size()});
  DRIFTD_TRY(const std::string digest, slow_hash(hex, view(layer)));
  known.put(input, bytes_of(digest));
  return to_hex(digest);
}

}  // namespace driftd::core
