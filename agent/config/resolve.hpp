// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace driftd::config {

/// Gives one kind of caller the right `resolve` for some backends. One of the four that name a caller is set.
struct ResolveGrant {
  std::optional<std::uint32_t> uid;   ///< of a process on a Unix socket
  std::string group;                  ///< name of a group that the process is in
  std::string certificate;            ///< name of a client certificate, or a glob of it
  std::string token;                  ///< `name` of one of grpc.tokens
  std::vector<std::string> backends;  ///< names or globs; not empty
  friend bool operator==(const ResolveGrant&, const ResolveGrant&) = default;
};

/// The section `resolve` of the configuration. Without grants nobody has the right.
struct Resolve {
  std::vector<ResolveGrant> grants;
  int per_minute = 300;  ///< requests of one caller
  friend bool operator==(const Resolve&, const Resolve&) = default;
};

/// A reference in the settings of a backend, and where its value is.
struct CredentialUse {
  enum class Kind { env, file, program };
  std::string backend;
  std::string reference;  ///< as written: `${file:redis/password}`
  Kind kind = Kind::env;
  std::string variable;        ///< of `${env:…}`
  std::filesystem::path file;  ///< absolute; of `${file:…}` and `${credential:…}`
};

}  // namespace driftd::config
