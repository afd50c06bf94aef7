// SPDX-License-Identifier: Apache-2.0
// Of driftd only: a configuration with a section `grpc` or a change log, and the sidecar, make it become driftd-grpc.
#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "app/change_log.hpp"
#include "app/grpc.hpp"
#include "base/escape.hpp"
#include "base/trust.hpp"
#include "cli/exit_codes.hpp"

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

/// Replaces this process. Returns only the reason why it could not.
Status exec_driftd_grpc(const std::string& wanted, const std::string& instead) {
  std::error_code unreadable;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  const std::string file = (self.parent_path() / "driftd-grpc").string();
  const auto cannot = [&](const std::string& why) {
    return fail(Code::invalid, wanted + " needs gRPC, and " + file + ", which serves it, cannot be run: " + why +
                                   "; install it beside driftd" + instead + " (a build with DRIFTD_GRPC=OFF has none)");
  };
  if (::access(file.c_str(), X_OK) != 0) return cannot(std::strerror(errno));
  for (const auto& step : resolve_path(file).steps) {
    const std::string why = tamper_risk(step);
    if (!why.empty()) return cannot(why);
  }
  std::vector<std::string> arguments = own_arguments();
  std::vector<char*> pointers;
  for (auto& one : arguments) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  ::execv(file.c_str(), pointers.data());
  return cannot(std::strerror(errno));
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
  if (!config.grpc.present && !config.change_log.on()) return {};
  const std::string wanted = config.grpc.present ? "the section 'grpc'" : "the change log";
  if (const std::string pipe = read_only_once(config); !pipe.empty()) {
    return fail(Code::invalid, "the configuration has " + wanted +
                                   ", so it and the files of its secrets are read by two programs, and " + pipe +
                                   " is not a file that can be read twice; put it into a file, or start driftd-grpc "
                                   "with the same arguments");
  }
  return exec_driftd_grpc(wanted, config.grpc.present ? ", or remove the section" : ", or switch change_log off");
}

Status check_grpc(const config::Config&) { return {}; }

Result<std::unique_ptr<Grpc>> make_grpc(const config::Config& config, GrpcNeeds) {
  if (config.grpc.present) return fail(Code::invalid, "this program has no gRPC services; run driftd-grpc");
  return std::unique_ptr<Grpc>();
}

Status check_change_log(const config::Config&) { return {}; }

Result<std::unique_ptr<core::ChangeLogReceiver>> make_change_log_receiver(const config::Config&,
                                                                          asio::any_io_executor) {
  return fail(Code::invalid, "this program has no gRPC, which the change log needs; run driftd-grpc");
}

int run_change_log_sidecar(const SidecarOptions&) {
  const Status failed = exec_driftd_grpc("changelog-sidecar", "");
  std::fprintf(stderr, "driftd: %s\n", escaped(failed.error().message).c_str());
  return cli::kConfig;
}

}  // namespace driftd::app
