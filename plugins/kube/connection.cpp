// SPDX-License-Identifier: Apache-2.0
#include "kube/connection.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "common/settings_reader.hpp"

namespace driftd::kube {
namespace {

constexpr std::size_t kMaxFile = 1u << 20;

}  // namespace

void use_service_account(Connection& connection, const std::string& folder) {
  connection.server = "https://kubernetes.default.svc";
  connection.tls.ca_file = folder + "/ca.crt";
  connection.identification.token_file = folder + "/token";
}

std::string read_kubeconfig(const std::string& path, const std::string& where) {
  std::ifstream in(path, std::ios::binary);
  if (!in) common::refuse_setting(where, "a file that can be read", path + ": " + std::strerror(errno));
  std::string out(kMaxFile, '\0');
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<std::size_t>(in.gcount()));
  return out;
}

}  // namespace driftd::kube
