// SPDX-License-Identifier: Apache-2.0
#include "core/slow_digest.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/slow_hash.hpp"

namespace driftd::core {
namespace {

constexpr std::size_t kMost = 131'072;  // entries; about 12 MiB when full

std::string_view view(const Key& key) { return {reinterpret_cast<const char*>(key.data()), key.size()}; }

SlowDigests::Bytes bytes_of(const std::string& raw) {
  SlowDigests::Bytes out{};
  std::memcpy(out.data(), raw.data(), std::min(raw.size(), out.size()));
  return out;
}

}  // namespace

std::size_t SlowDigests::Hash::operator()(const Bytes& name) const {
  std::size_t out = 0;  // any part of a SHA-256 is a good hash
  std::memcpy(&out, name.data(), sizeof out);
  return out;
}

std::optional<SlowDigests::Bytes> SlowDigests::find(const Bytes& name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = young_.find(name); found != young_.end()) return found->second;
  const auto found = old_.find(name);
  if (found == old_.end()) return std::nullopt;
  const Bytes made = found->second;
  old_.erase(found);
  put_young(name, made);
  return made;
}

void SlowDigests::put(const Bytes& name, const Bytes& made) {
  const std::lock_guard lock(mutex_);
  old_.erase(name);
  put_young(name, made);
}

void SlowDigests::put_young(const Bytes& name, const Bytes& made) {
  if (young_.size() >= half_) old_ = std::exchange(young_, Map{});
  young_.insert_or_assign(name, made);
}

std::size_t SlowDigests::size() const {
  const std::lock_guard lock(mutex_);
  return young_.size() + old_.size();
}

Result<std::string> slow_hex(const Key& layer, const std::string& hex) {
  static SlowDigests known(kMost);
  const auto name = bytes_of(sha256(std::string(view(layer)) + hex));
  if (const auto made = known.find(name)) return to_hex({reinterpret_cast<const char*>(made->data()), made->size()});
  DRIFTD_TRY(const std::string made, slow_hash(hex, view(layer)));
  known.put(name, bytes_of(made));
  return to_hex(made);
}

}  // namespace driftd::core
