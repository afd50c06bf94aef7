// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::terraform {

/// The bytes of a state, deflated in memory to a tenth or less. The state is complete before anything is emitted of it,
/// and can be read several times. Written once, then read; wiped by the destructor. Not thread-safe.
class Spool {
 public:
  Spool();
  ~Spool();
  Spool(Spool&&) noexcept;
  Spool& operator=(Spool&&) noexcept;

  /// Appends bytes. Throws BUDGET above 512 MiB of text or 192 MiB deflated.
  void write(std::string_view bytes);
  /// Ends the text; nothing may be written after it.
  void finish();
  std::uint64_t size() const { return size_; }       ///< bytes of the text
  std::uint64_t stored() const { return stored_; }   ///< bytes in memory
  std::string text() const;                          ///< the whole text; for small ones
  const std::string& hash() const { return hash_; }  ///< XXH3 of the text, 32 hex digits; after finish()

  /// Reads the text from its first byte. The spool must outlive it.
  class Reader : public std::streambuf {
   public:
    explicit Reader(const Spool& spool);  ///< borrows the spool
    ~Reader() override;

   protected:
    int_type underflow() override;  ///< inflates the next piece; eof behind the last

   private:
    struct State;
    const Spool& spool_;
    std::unique_ptr<State> state_;
  };

 private:
  struct Deflate;
  void pump(std::string_view bytes, int flush);  ///< deflates into the last block

  std::unique_ptr<Deflate> deflate_;
  std::vector<std::string> blocks_;      ///< deflated; wiped before they are freed
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
