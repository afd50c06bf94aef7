// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace driftd::test {

/// A state backend over HTTP: a server with a state that driftd may read, and what can happen to this server.
class Site {
 public:
  virtual ~Site() = default;
  virtual int port() const = 0;  ///< of the server
  virtual bool speaks_tls() const { return false; }
  /// Settings for this server behind `origin`, for example `https://127.0.0.1:4711`. `secret` is the token that stands
  /// for the credential: `right` or `wrong`.
  virtual nlohmann::json backend(const std::string& origin, const std::string& secret = "right") const = 0;
  virtual const char* ca_setting() const = 0;
  virtual std::string password() const = 0;  ///< what the token `right` stands for
  virtual std::string right() const = 0;     ///< the missing right as a diagnostic names it
  /// Stores a state on the server. It is longer than 8 KiB on the wire.
  virtual void publish(int serial, int value) = 0;
  virtual void stop() = 0;
  virtual void pause() = 0;
  virtual void resume() = 0;
  virtual void revoke() = 0;  ///< takes driftd's right to read the state
  virtual void grant() = 0;
};

/// `name`: `http`, `s3`, `consul`, `kubernetes` or `cloud`. Nothing is published yet.
std::unique_ptr<Site> make_site(const std::string& name);

/// A state of version 4 with `terraform_data.a`, whose input is this value, and with 24,000 random characters, which
/// compress badly.
std::string state_text(int serial, int value, const std::string& lineage = "site");

}  // namespace driftd::test
