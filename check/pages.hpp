// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/provider.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace driftd::check {

/// How inputs are placed in memory. By default they lie in ordinary, writable memory.
struct InputLayout {
  bool guard_structs = false;  ///< an inaccessible page directly behind each struct
  bool guard_texts = false;    ///< an inaccessible page directly behind each text, which has no final NUL
  bool read_only = false;      ///< structs and texts lie in read-only pages
  bool poison = false;         ///< inputs are overwritten with 0xDD after the call
  bool kept = false;           ///< inputs stay readable, and as they are, after the call
  std::uint32_t longer = 0;  ///< bytes of garbage at the end of each struct, as a newer header would add; a multiple of
                             ///< 8
  std::uint64_t fail_allocation = 0;  ///< number of the allocation that fails in each call; 0: none
  bool spare_open = false;            ///< no allocation fails in open
};

/// The inputs of one call. Each lies in pages of its own. Not thread-safe.
class Inputs {
 public:
  explicit Inputs(InputLayout layout) : layout_(layout) {}
  ~Inputs();  ///< poisons the pages if the layout says so: these stay mapped, others are unmapped
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  driftd_str text(std::string_view text);
  /// Copies a struct whose first member is its size. Sets `size`, and fills the extra bytes of a newer struct with
  /// garbage.
  template <class T>
  const T* put(const T& value) {
    return static_cast<const T*>(put_structs(&value, sizeof value, 1, true));
  }
  /// Copies an array of such structs, stride() bytes apart. Returns null if `values` is empty.
  template <class T>
  const T* put(const std::vector<T>& values) {
    return values.empty() ? nullptr : static_cast<const T*>(put_structs(values.data(), sizeof(T), values.size(), true));
  }
  /// Copies an array of texts. Their distance is always sizeof(driftd_str), which never grows.
  const driftd_str* put_texts(const std::vector<driftd_str>& texts) {
    return texts.empty()
               ? nullptr
               : static_cast<const driftd_str*>(put_structs(texts.data(), sizeof(driftd_str), texts.size(), false));
  }
  template <class T>
  std::uint32_t stride() const {
    return static_cast<std::uint32_t>(sizeof(T)) + layout_.longer;
  }
  void ready();  ///< must be called before the call: makes the pages read-only if the layout says so

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

/// Memory for the provider to write to: `size` bytes, followed by an inaccessible page or by 64 canary bytes.
class Output {
 public:
  Output(std::size_t size, bool guarded);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  char* at() const { return at_; }
  std::size_t written_behind() const;  ///< number of canary bytes that changed

 private:
  char* mapping_;
  char* at_;
  std::size_t size_, mapped_;
  bool guarded_;
};

}  // namespace driftd::check
