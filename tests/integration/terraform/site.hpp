// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace driftd::test {

/// A state backend that is asked over HTTP: a real server with a state that driftd may read, and what can befall it.
class Site {
 public:
  virtual ~Site() = default;
  virtual int port() const = 0;  ///< of the server
  virtual bool speaks_tls() const { return false; }
  /// Settings for this server at `https://127.0.0.1:<port>`; secrets are the tokens `right` and `wrong`.
  virtual nlohmann::json backend(const std::string& origin, const std::string& secret = "right") const = 0;
  virtual const char* ca_setting() const = 0;
  virtual std::string password() const = 0;  ///< what the token `right` stands for
  virtual std::string right() const = 0;     ///< as a refusal names it
  /// Puts a state there; it is longer than 8 KiB on the wire.
  virtual void publish(int serial, int value) = 0;
  virtual void stop() = 0;
  virtual void pause() = 0;
  virtual void resume() = 0;
  virtual void revoke() = 0;
  virtual void grant() = 0;
};

/// `http`, `s3`, `consul`, `kubernetes`, `cloud`. Nothing is published yet.
std::unique_ptr<Site> site_of(const std::string& name);

/// A v4 state with `terraform_data.a` of this input, and much that cannot be deflated.
std::string state_text(int serial, int value, const std::string& lineage = "site");

}  // namespace driftd::test
