// SPDX-License-Identifier: Apache-2.0
#include "host/plugin_scan.hpp"

#include <sys/stat.h>
#include <algorithm>

namespace driftd::host {

namespace fs = std::filesystem;

Stamp stamp_of(const fs::path& file) {
  struct stat st {};
  if (::stat(file.c_str(), &st) != 0) return {};
  return {st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec, st.st_size, st.st_ino};
}

std::vector<std::string> plugins_in(const std::vector<fs::path>& folders) {
  std::vector<std::string> out;
  for (const auto& folder : folders) {
    std::vector<std::string> files;
    std::error_code failed;  // a folder that does not exist, or disappears, has no plugins
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
      if (at->path().extension() == ".so") files.push_back(at->path().string());
    }
    std::sort(files.begin(), files.end());
    out.insert(out.end(), files.begin(), files.end());
  }
  return out;
}

}  // namespace driftd::host
