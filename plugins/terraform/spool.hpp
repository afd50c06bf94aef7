// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::terraform {

/// The bytes of a state, kept deflated in memory: a state shrinks to a tenth or less, is whole and unchanging before
/// anything is said of it, and may be read as often as it takes. Written once, then read; wiped when it goes. One
/// thread.
class Spool {
 public:
  Spool();
  ~Spool();
  Spool(Spool&&) noexcept;
  Spool& operator=(Spool&&) noexcept;

  /// Appends. Throws sdk::Failure BUDGET above 512 MiB of text or 192 MiB of what it is deflated to.
  void write(std::string_view bytes);
  /// The last byte was written; nothing may be written after it.
  void finish();
  std::uint64_t size() const { return size_; }       ///< bytes of the text
  std::uint64_t stored() const { return stored_; }   ///< bytes in memory
  std::string text() const;                          ///< the whole text; for small ones
  const std::string& hash() const { return hash_; }  ///< XXH3 of the text, 32 hex digits; after finish()

  /// The text from its first byte. The spool must outlive it.
  class Reader : public std::streambuf {
   public:
    explicit Reader(const Spool& spool);
    ~Reader() override;

   protected:
    int_type underflow() override;

   private:
    struct State;
    const Spool& spool_;
    std::unique_ptr<State> state_;
  };

 private:
  struct Deflate;
  void pump(std::string_view bytes, int flush);

  std::unique_ptr<Deflate> deflate_;
  std::vector<std::string> blocks_;
  std::uint64_t size_ = 0, stored_ = 0;
  std::string hash_;
};

/// Inflates what came gzipped, as it comes, into a spool. Throws sdk::Failure CORRUPT (no gzip, cut off, a wrong
/// checksum).
class Gunzip {
 public:
  explicit Gunzip(Spool& to);
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

/// The text that these first bytes stand for, as far as they go: inflated where they are gzipped. Never throws.
std::string beginning_of(std::string_view bytes);

}  // namespace driftd::terraform
