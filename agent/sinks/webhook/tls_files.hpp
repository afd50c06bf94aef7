// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "sinks/webhook/settings.hpp"

namespace driftd::sinks {

/// The contents of the files of TlsPaths, in PEM. Empty where there is no such file. `key` is secret.
struct TlsMaterial {
  std::string ca, cert, key;
};

/// The TLS files of one sink. Content that cannot be used (absent, half written, a certificate without its key) never
/// replaces content that can. Reads block: one thread, and not the core thread.
class TlsFiles {
 public:
  explicit TlsFiles(TlsPaths paths) : paths_(std::move(paths)) {}

  /// Reads the files if one of them changed since the last call, or is wrong. Returns the newest content that can be
  /// used, never null. Fails with `invalid` while there was none yet: it names the file and what is wrong with it.
  Result<std::shared_ptr<const TlsMaterial>> current();
  /// Returns why the files, as they are now, are not used. Empty if they are. As of the last current().
  const std::string& fault() const { return fault_; }

 private:
  /// What distinguishes a file from another one at its path: device, inode, size, times of content and of inode in ns.
  using Mark = std::array<std::int64_t, 5>;
  using Marks = std::array<Mark, 3>;  ///< of ca, cert, key

  Marks marks() const;
  Result<TlsMaterial> read() const;

  TlsPaths paths_;
  Marks read_{};          ///< of the content in use
  bool settled_ = false;  ///< read_ is of files that nobody was writing
  std::string fault_;
  std::shared_ptr<const TlsMaterial> material_;
};

}  // namespace driftd::sinks
