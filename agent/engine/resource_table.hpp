// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/digest.hpp"

namespace driftd::engine {

/// A map by digest that wastes little while it grows: values stand in blocks that never move, and a hash set of 4-byte
/// numbers finds them. A hash map of the values would have up to as many free places as values. Pointers to values stay
/// valid until the value is erased. One thread.
template <class T>
class ResourceTable {
 public:
  ResourceTable() : found_(0, Hash{&blocks_}, Equal{&blocks_}) {}
  ResourceTable(const ResourceTable&) = delete;
  ResourceTable& operator=(const ResourceTable&) = delete;

  T* find(const Digest& key) {
    const auto at = found_.find(key);
    return at == found_.end() ? nullptr : &slot(blocks_, *at).value;
  }
  /// Returns the value, made with its default if it is new, and true if it is.
  std::pair<T*, bool> insert(const Digest& key) {
    if (T* known = find(key)) return {known, false};
    if (free_.empty()) add_block();
    const std::uint32_t number = free_.back();
    free_.pop_back();
    slot(blocks_, number) = {key, T{}};
    found_.insert(number);
    return {&slot(blocks_, number).value, true};
  }
  void erase(const Digest& key) {
    const auto at = found_.find(key);
    if (at == found_.end()) return;
    const std::uint32_t number = *at;
    found_.erase(at);
    slot(blocks_, number).key = Digest{};
    free_.push_back(number);
  }
  std::size_t size() const { return found_.size(); }
  /// Calls `f(key, value)` for each; `f` must not insert or erase.
  template <class F>
  void for_each(F f) const {
    for (const auto& block : blocks_) {
      for (const auto& one : *block) {
        if (one.key != Digest{}) f(one.key, one.value);
      }
    }
  }

 private:
  struct Slot {
    Digest key;  ///< zero: free
    T value;
  };
  static constexpr std::uint32_t kBlock = 256;
  using Blocks = std::vector<std::unique_ptr<std::array<Slot, kBlock>>>;
  static Slot& slot(const Blocks& blocks, std::uint32_t number) { return (*blocks[number / kBlock])[number % kBlock]; }
  struct Hash {
    using is_transparent = void;
    const Blocks* blocks;
    std::size_t operator()(const Digest& key) const { return static_cast<std::size_t>(key.low); }
    std::size_t operator()(std::uint32_t number) const { return (*this)(slot(*blocks, number).key); }
  };
  struct Equal {
    using is_transparent = void;
    const Blocks* blocks;
    bool operator()(std::uint32_t a, std::uint32_t b) const { return a == b; }
    bool operator()(const Digest& key, std::uint32_t b) const { return slot(*blocks, b).key == key; }
    bool operator()(std::uint32_t a, const Digest& key) const { return slot(*blocks, a).key == key; }
  };

  void add_block() {
    const auto first = static_cast<std::uint32_t>(blocks_.size()) * kBlock;
    blocks_.push_back(std::make_unique<std::array<Slot, kBlock>>());
    for (std::uint32_t i = kBlock; i > 0; --i) free_.push_back(first + i - 1);
  }

  Blocks blocks_;
  std::vector<std::uint32_t> free_;
  boost::unordered_flat_set<std::uint32_t, Hash, Equal> found_;
};

}  // namespace driftd::engine
