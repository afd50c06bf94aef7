// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "support/process.hpp"

namespace driftd::test {

/// A certificate authority of the test's own, made by openssl, in a temporary folder.
class Certificates {
 public:
  Certificates();
  std::string ca() const { return dir_.file("ca.pem"); }
  /// Makes a certificate for `common_name` in `<name>.pem` and its key in `<name>.key`. `names` are its subject
  /// alternative names (`DNS:db,IP:127.0.0.1`); empty: none. The key is readable by everybody. With `owner` it is
  /// readable by that user alone, as PostgreSQL requires.
  void issue(const std::string& name, const std::string& common_name, const std::string& names = {},
             const std::string& owner = {}) const;
  std::string certificate(const std::string& name) const { return dir_.file(name + ".pem"); }
  std::string key(const std::string& name) const { return dir_.file(name + ".key"); }

 private:
  TempDir dir_;
};

}  // namespace driftd::test
