// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace driftd::sinks {

/// A message that the stream acknowledged: if it is still there under our id, every event up to `safe` is, too.
struct Mark {
  std::uint64_t stream_seq = 0;
  std::int64_t safe = 0;  ///< event seq below every event that was in flight when this one was sent
  std::string id;         ///< Nats-Msg-Id
};

/// The last acknowledged message and one of each 256 before it, newest last; kept in the cursor's notes so that a broker
/// that went backwards is found out after a restart, too.
class Marks {
 public:
  void acked(Mark mark);
  void clear() { marks_.clear(); }
  void cut_after(std::uint64_t stream_seq);
  const std::deque<Mark>& all() const { return marks_; }
  void write(std::map<std::string, std::string>& notes) const;
  void read(const std::map<std::string, std::string>& notes);

 private:
  std::deque<Mark> marks_;
  int since_kept_ = 0;
};

}  // namespace driftd::sinks
