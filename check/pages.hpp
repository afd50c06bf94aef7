// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/provider.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace driftd::check {

/// How a provider gets its inputs; the default is kind.
struct InputLayout {
  bool guard_structs = false;  ///< a page without access right behind each struct
  bool guard_texts = false;    ///< the same behind each text, and no NUL
  bool read_only = false;      ///< the pages of structs and texts refuse writes
  bool poison = false;         ///< overwritten with 0xDD when the call has returned
  std::uint32_t longer = 0;    ///< bytes of garbage that a newer header's structs have at their tail, a multiple of 8
  std::uint64_t fail_allocation = 0;  ///< of each call, the one that fails; 0: none
  bool spare_open = false;            ///< but none in open
};

/// The inputs of one call, each in pages of its own. Not thread-safe.
class Inputs {
 public:
  explicit Inputs(InputLayout layout) : layout_(layout) {}
  ~Inputs();  ///< poisons if that is the layout; poisoned pages stay, others are unmapped
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  driftd_str text(std::string_view text);
  /// A struct whose first member is its size; `size` is set, the tail of a newer one filled with garbage.
  template <class T>
  const T* put(const T& value) {
    return static_cast<const T*>(put_structs(&value, sizeof value, 1, true));
  }
  /// An array of such structs, stride() apart; nullptr when it is empty.
  template <class T>
  const T* put(const std::vector<T>& values) {
    return values.empty() ? nullptr : static_cast<const T*>(put_structs(values.data(), sizeof(T), values.size(), true));
  }
  /// An array of texts: driftd_str never grows.
  const driftd_str* put_texts(const std::vector<driftd_str>& texts) {
    return texts.empty()
               ? nullptr
               : static_cast<const driftd_str*>(put_structs(texts.data(), sizeof(driftd_str), texts.size(), false));
  }
  template <class T>
  std::uint32_t stride() const {
    return static_cast<std::uint32_t>(sizeof(T)) + layout_.longer;
  }
  void ready();  ///< before the call: makes the pages read-only if that is the layout

 private:
  struct Block {
    char* at;
    std::size_t size;
  };
  char* block(std::size_t size, bool guarded);
  const void* put_structs(const void* values, std::size_t size, std::size_t count, bool sized);

  const InputLayout layout_;
  std::vector<Block> blocks_;
};

/// Memory that the provider writes: `size` bytes, then a page without access or 64 bytes of canary.
class Output {
 public:
  Output(std::size_t size, bool guarded);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  char* at() const { return at_; }
  std::size_t written_behind() const;  ///< canary bytes that changed

 private:
  char* mapping_;
  char* at_;
  std::size_t size_, mapped_;
  bool guarded_;
};

}  // namespace driftd::check
