// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace driftd::check {

/// A folder of this run in the folder for temporary files, for Unix sockets. The destructor removes it with everything
/// in it.
class SocketFolder {
 public:
  /// Throws CheckNotMade if it cannot be made.
  SocketFolder();
  ~SocketFolder();
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Returns a socket of the type (SOCK_STREAM or SOCK_DGRAM, with flags) that is bound to the path. The caller closes it
/// and removes the file. Throws CheckNotMade if that fails.
int bind_unix_socket(const std::string& path, int type);
/// Returns a non-blocking socket of the type that is connected to the path. Returns -1 if that fails or would block.
int connect_unix_socket(const std::string& path, int type);

}  // namespace driftd::check
