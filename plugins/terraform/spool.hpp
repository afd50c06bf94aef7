// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::terraform {

/// The bytes of a state, compressed in memory to a tenth or less. The state is complete before anything is emitted of
/// it, and can be read several times. Written once, then read; wiped by the destructor. Not thread-safe.
class Spool {
 public:
  Spool();
  ~Spool();
  Spool(Spool&&) noexcept;
  Spool& operator=(Spool&&) noexcept;

  /// Appends bytes. Throws BUDGET above 512 MiB of text or 192 MiB compressed.
  void write(std::string_view bytes);
  /// Ends the text; nothing may be written after it.
  void finish();
  std::uint64_t size() const { return size_; }       ///< bytes of the text
  std::uint64_t stored() const { return stored_; }   ///< bytes in memory
  std::string text() const;                          ///< the whole text; for small ones
  const std::string& hash() const { return hash_; }  ///< XXH3 of the text, 32 hex digits; after finish()

  /// Reads the text from its first byte. The spool must outlive it.
  class Reader {
   public:
    explicit Reader(const Spool& spool);  ///< borrows the spool
    ~Reader();
    Reader(Reader&&) noexcept;
    /// Returns the number of bytes that it put at `to`: `size`, or fewer at the end of the text.
    std::size_t read(char* to, std::size_t size);

   private:
    struct State;
    const Spool* spool_;
    std::unique_ptr<State> state_;
  };

 private:
  struct Compression;
  void pump(std::string_view bytes, bool end);  ///< compresses into the last block

  std::unique_ptr<Compression> compression_;
  std::vector<std::string> blocks_;      ///< compressed; wiped before they are freed
  std::uint64_t size_ = 0, stored_ = 0;  ///< bytes of the text, bytes in memory
  std::string hash_;
};

/// Inflates a gzip stream into a spool as it arrives. Throws CORRUPT (not gzip, truncated, wrong checksum).
class Gunzip {
 public:
  explicit Gunzip(Spool& to);  ///< borrows the spool, which is not finished
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;
  void write(std::string_view bytes);
  void finish();

 private:
  struct State;
  Spool& to_;
  std::unique_ptr<State> state_;
};

/// Returns the text of these first bytes as far as they go, inflated if they are gzipped. Never throws.
std::string beginning_of(std::string_view bytes);

}  // namespace driftd::terraform
