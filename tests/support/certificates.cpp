// SPDX-License-Identifier: Apache-2.0
#include "support/certificates.hpp"

#include <pwd.h>
#include <unistd.h>
#include <filesystem>
#include <stdexcept>

namespace driftd::test {
namespace {

namespace fs = std::filesystem;

void openssl(std::vector<std::string> words) {
  words.insert(words.begin(), "openssl");
  const Output out = run(words);
  if (out.code != 0) throw std::runtime_error("openssl " + words[1] + ": " + out.err);
}

}  // namespace

Certificates::Certificates() {
  fs::permissions(dir_.path(), fs::perms::all & ~fs::perms::others_write & ~fs::perms::group_write);
  openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
           "/CN=driftd test CA", "-keyout", dir_.file("ca.key"), "-out", ca()});
}

void Certificates::issue(const std::string& name, const std::string& common_name, const std::string& names,
                         const std::string& owner) const {
  const std::string request = dir_.file(name + ".csr");
  openssl({"req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
           "/CN=" + common_name, "-keyout", key(name), "-out", request});
  const std::string extensions = dir_.write(name + ".ext", names.empty() ? "" : "subjectAltName=" + names + "\n");
  openssl({"x509", "-req", "-in", request, "-CA", ca(), "-CAkey", dir_.file("ca.key"), "-CAcreateserial", "-days", "2",
           "-extfile", extensions, "-out", certificate(name)});
  fs::permissions(key(name), owner.empty() ? fs::perms(0644) : fs::perms(0600));
  const passwd* entry = owner.empty() || ::getuid() != 0 ? nullptr : ::getpwnam(owner.c_str());
  if (entry != nullptr && ::chown(key(name).c_str(), entry->pw_uid, entry->pw_gid) != 0) {
    throw std::runtime_error("chown " + key(name));
  }
}

}  // namespace driftd::test
