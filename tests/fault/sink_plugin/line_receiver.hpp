// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace driftd::test {

/// What the receiver of bad_sink.c was sent about one event.
struct ReceivedLine {
  std::string key, id;
  unsigned long long sequence = 0;
};

/// A TCP server on loopback that answers each line with `ok` or, as `decide` says, with `bad`. Any thread.
class LineReceiver {
 public:
  using Decide = std::function<bool(const ReceivedLine&)>;  ///< true: bad
  explicit LineReceiver(Decide decide);
  ~LineReceiver();
  LineReceiver(const LineReceiver&) = delete;
  LineReceiver& operator=(const LineReceiver&) = delete;

  int port() const { return port_; }
  /// Events that were answered with `ok`, in their order, repeats included.
  std::vector<ReceivedLine> accepted() const;
  std::size_t distinct() const;  ///< of accepted(), by id
  /// Returns the first key whose events came in another order than that of their sequence, repeats aside. Empty: none.
  std::string key_out_of_order() const;

 private:
  void accept_all();
  void serve(int fd);

  const Decide decide_;
  int listening_ = -1, port_ = 0;
  mutable std::mutex mutex_;
  std::vector<ReceivedLine> accepted_;
  std::set<int> open_;
  std::vector<std::thread> serving_;
  std::thread accepting_;
};

}  // namespace driftd::test
