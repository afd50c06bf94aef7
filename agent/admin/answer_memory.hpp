// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace driftd::admin {

/// Counts the bytes of all answers that are being made or wait to be read. Any thread.
class AnswerMemory {
 public:
  std::size_t bytes() const { return bytes_; }  ///< sum over all living MemoryShares

 private:
  friend class MemoryShare;
  std::atomic<std::size_t> bytes_ = 0;  ///< changed only by MemoryShare
};

/// The memory that one answer takes of AnswerMemory, from its first row until it is sent. One thread at a time.
class MemoryShare {
 public:
  /// An answer of up to this number of bytes is never refused: a status, a decision, an error.
  static constexpr std::size_t kNeverRefused = 64u << 10;

  /// `max`: maximum of the bytes of all answers together; beyond it this one may not grow.
  MemoryShare(std::shared_ptr<AnswerMemory> total, std::size_t max) : total_(std::move(total)), max_(max) {}
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;
  /// Gives its bytes back to the total.
  ~MemoryShare() { total_->bytes_ -= bytes_; }

  /// Sets the size of the answer. Returns false if there is no memory for it; the size then stays as it was.
  bool resize(std::size_t bytes) {
    peak_ = std::max(peak_, bytes);
    const std::size_t before = total_->bytes_.fetch_add(bytes - bytes_);  // modulo 2^64: it may shrink
    if (bytes > bytes_ && bytes > kNeverRefused && before + (bytes - bytes_) > max_) {
      total_->bytes_ -= bytes - bytes_;
      refused_ = true;
      return false;
    }
    bytes_ = bytes;
    return true;
  }
  /// Sets the size of an answer that must be given in any case, because what it answers is done.
  void force_size(std::size_t bytes) {
    peak_ = std::max(peak_, bytes);
    total_->bytes_ += bytes - bytes_;
    bytes_ = bytes;
  }
  bool refused() const { return refused_; }   ///< resize() failed at least once
  std::size_t peak() const { return peak_; }  ///< largest size that was asked for
  std::size_t max() const { return max_; }    ///< bytes, as given to the constructor

 private:
  std::shared_ptr<AnswerMemory> total_;
  std::size_t max_, bytes_ = 0, peak_ = 0;  ///< all in bytes; `bytes_` is what this answer takes now
  bool refused_ = false;
};

}  // namespace driftd::admin
