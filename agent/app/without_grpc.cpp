// SPDX-License-Identifier: Apache-2.0
// Of driftd only: a configuration with a section `grpc` makes it become driftd-grpc.
#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "app/grpc.hpp"
#include "base/trust.hpp"

namespace driftd::app {
namespace {

/// Returns the arguments of this process, as the kernel has them.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> out;
  for (std::size_t at = 0; at < all.size();) {
    out.emplace_back(all.c_str() + at);
    at += out.back().size() + 1;
  }
  return out;
}

Error cannot(const std::string& file, const std::string& why) {
  return {Code::invalid, "the file has a section 'grpc', and " + file + ", which serves it, cannot be run: " + why +
                             "; install it beside driftd, or remove the section"};
}

/// Returns the first of the files that a second reading would find empty, such as a pipe; empty if there is none.
std::string read_only_once(const config::Config& config) {
  std::vector<std::filesystem::path> files = config.secret_files;
  files.emplace_back(config.file);
  for (const auto& file : files) {
    std::error_code unknown;
    if (!std::filesystem::is_regular_file(file, unknown) && !unknown) return file.string();
  }
  return {};
}

}  // namespace

Status become_driftd_grpc(const config::Config& config) {
  if (!config.grpc.present) return {};
  std::error_code unreadable;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  const std::string file = (self.parent_path() / "driftd-grpc").string();
  if (::access(file.c_str(), X_OK) != 0) return fail(cannot(file, std::strerror(errno)));
  for (const auto& step : resolve_path(file).steps) {
    const std::string why = tamper_risk(step);
    if (!why.empty()) return fail(cannot(file, why));
  }
  if (const std::string pipe = read_only_once(config); !pipe.empty()) {
    return fail(Code::invalid,
                "the configuration has a section 'grpc', so it and the files of its secrets are read by two "
                "programs, and " +
                    pipe +
                    " is not a file that can be read twice; put it into a file, or start "
                    "driftd-grpc with the same arguments");
  }
  std::vector<std::string> arguments = own_arguments();
  std::vector<char*> pointers;
  for (auto& one : arguments) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  ::execv(file.c_str(), pointers.data());
  return fail(cannot(file, std::strerror(errno)));
}

Status check_grpc(const config::Config&) { return {}; }

Result<std::unique_ptr<Grpc>> make_grpc(const config::Config& config, GrpcNeeds) {
  if (config.grpc.present) return fail(Code::invalid, "this program has no gRPC services; run driftd-grpc");
  return std::unique_ptr<Grpc>();
}

}  // namespace driftd::app
