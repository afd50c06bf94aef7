// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace driftd::admin {

/// The bytes of all answers that are made or wait to be read. Any thread.
class AnswerMemory {
 public:
  std::size_t bytes() const { return bytes_; }

 private:
  friend class MemoryShare;
  std::atomic<std::size_t> bytes_ = 0;
};

/// The part of the room that one answer takes, from its first row until it is sent. One thread at a time.
class MemoryShare {
 public:
  /// An answer of so many bytes has room always: a status, a decision, an error.
  static constexpr std::size_t kFree = 64u << 10;

  /// `max`: bytes of all answers beside which this one may grow.
  MemoryShare(std::shared_ptr<AnswerMemory> room, std::size_t max) : room_(std::move(room)), max_(max) {}
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;
  ~MemoryShare() { room_->bytes_ -= bytes_; }

  /// The answer has so many bytes. Returns false if there is no room for them; the share stays as it was then.
  bool resize(std::size_t bytes) {
    peak_ = std::max(peak_, bytes);
    const std::size_t before = room_->bytes_.fetch_add(bytes - bytes_);  // modulo 2^64: it may shrink
    if (bytes > bytes_ && bytes > kFree && before + (bytes - bytes_) > max_) {
      room_->bytes_ -= bytes - bytes_;
      refused_ = true;
      return false;
    }
    bytes_ = bytes;
    return true;
  }
  /// The same of an answer that must be given, because what it answers is done.
  void force_size(std::size_t bytes) {
    peak_ = std::max(peak_, bytes);
    room_->bytes_ += bytes - bytes_;
    bytes_ = bytes;
  }
  bool refused() const { return refused_; }   ///< there was no room once
  std::size_t peak() const { return peak_; }  ///< the max bytes that were asked for
  std::size_t max() const { return max_; }

 private:
  std::shared_ptr<AnswerMemory> room_;
  std::size_t max_, bytes_ = 0, peak_ = 0;
  bool refused_ = false;
};

}  // namespace driftd::admin
