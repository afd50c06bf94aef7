// SPDX-License-Identifier: Apache-2.0
#include "host/plugin_files.hpp"

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
    std::error_code failed;  // a folder that is not there holds no plugins
    for (const auto& entry : fs::directory_iterator(folder, failed)) {
      if (entry.path().extension() == ".so") files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    out.insert(out.end(), files.begin(), files.end());
  }
  return out;
}

}  // namespace driftd::host
