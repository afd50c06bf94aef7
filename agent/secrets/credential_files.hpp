// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "base/secret.hpp"
#include "base/task.hpp"

namespace driftd::secrets {

/// Reads secret files for one request after the other. Core thread, except for the reading itself, which runs on `io`.
/// A file on a dead mount may block a thread of `io` for ever, so only a few may: then requests fail at once.
class CredentialFiles {
 public:
  CredentialFiles(asio::any_io_executor core, asio::any_io_executor io) : core_(std::move(core)), io_(std::move(io)) {}

  /// Returns the texts of the files, as they are now and as they are together: all are read again until two passes
  /// agree, unless none was written within the last second. The rights of each file are checked (config/rights.hpp).
  /// `unavailable` if one cannot be read, or they do not settle within three seconds; `deadline` if one cannot be read
  /// within five.
  Task<Result<std::vector<Secret>>> read(std::vector<std::filesystem::path> files);

 private:
  struct Pass;
  Task<Status> run(std::shared_ptr<Pass> pass);

  const asio::any_io_executor core_, io_;
  std::shared_ptr<int> reading_ = std::make_shared<int>(0);  ///< passes that occupy a thread
};

}  // namespace driftd::secrets
