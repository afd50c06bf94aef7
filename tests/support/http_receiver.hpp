// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
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
  int size = 0;  ///< bytes of the answer's body
  /// If not empty, this is the answer to every request whose body contains this text, and to no other.
  std::string only_for;
  std::string trick;  ///< one of the hostile answers of http_receiver.py; empty: the answer is as above
};
/// The files of an HTTPS receiver. With `client_ca` it asks for a certificate of that authority.
struct HttpReceiverTls {
  std::string cert, key, client_ca;
};
/// A request as it arrived. Header names are in lower case.
struct HttpReceived {
  std::string path, body;
  std::map<std::string, std::string> headers;
  int status = 0;                              ///< the status of the answer
  std::string peer;                            ///< the common name of the client's certificate
  std::string version;                         ///< `HTTP/1.1`
  std::chrono::steady_clock::time_point at{};  ///< when it was there as a whole
};

/// A webhook receiver (http_receiver.py) on a free loopback port, in a child process that ends with the test.
class HttpReceiver {
 public:
  /// Each request gets the next answer. The last one is repeated.
  explicit HttpReceiver(std::vector<HttpScripted> answers = {{}}, HttpReceiverTls tls = {});
  std::string url(const std::string& path = "/hook") const;
  int port() const { return port_; }
  std::vector<HttpReceived> received() const;
  std::string log_file() const { return dir_.file("requests.jsonl"); }
  void kill() { child_.kill(); }
  void signal(int number) const { child_.signal(number); }
  void start();  ///< starts it again on the same port, with the first answer

 private:
  TempDir dir_;
  int port_;
  std::vector<HttpScripted> answers_;
  HttpReceiverTls tls_;
  Child child_;
};

}  // namespace driftd::test
