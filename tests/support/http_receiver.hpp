// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// How the receiver answers one POST.
struct HttpScripted {
  int status = 200;
  std::map<std::string, std::string> headers;
  int delay_ms = 0;
  int size = 0;          ///< bytes of the answer's body
  std::string only_for;  ///< answers every request whose body holds this text, and no other; empty: the next one
};
/// A request as it arrived; header names in lower case.
struct HttpReceived {
  std::string path, body;
  std::map<std::string, std::string> headers;
  int status = 0;  ///< what it was answered
};

/// A webhook receiver on a free loopback port (http_receiver.py), one child process; dies with the test.
class HttpReceiver {
 public:
  /// One answer per request, the last one stays.
  explicit HttpReceiver(std::vector<HttpScripted> answers = {{}});
  std::string url(const std::string& path = "/hook") const;
  int port() const { return port_; }
  std::vector<HttpReceived> received() const;
  std::string log_file() const { return dir_.file("requests.jsonl"); }
  void kill() { child_.kill(); }
  void start();  ///< again, on the same port, its script from the beginning

 private:
  TempDir dir_;
  int port_;
  std::vector<HttpScripted> answers_;
  Child child_;
};

}  // namespace driftd::test
