// SPDX-License-Identifier: Apache-2.0
// The files that a worker sees. The numbers are those of the kernel (include/uapi/linux/landlock.h), because the
// headers of Debian 12 end at ABI 2.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "worker/jail.hpp"

namespace driftd::worker::jail {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kWriteFile = 1u << 1, kReadFile = 1u << 2, kReadDir = 1u << 3, kTruncate = 1u << 14,
                        kIoctlDev = 1u << 15;
constexpr std::uint64_t kRead = kReadFile | kReadDir;
constexpr std::uint64_t kScopeAbstractSockets = 1u << 0, kScopeSignals = 1u << 1;
constexpr unsigned kVersionFlag = 1;
constexpr int kRulePathBeneath = 1;

struct RulesetAttr {
  std::uint64_t handled_fs, handled_net, scoped;
};
struct __attribute__((packed)) PathBeneath {
  std::uint64_t allowed;
  std::int32_t parent;
};

struct Descriptor {
  int fd;
  explicit Descriptor(long opened) : fd(static_cast<int>(opened)) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

/// Returns every right of this ABI: what no rule allows is denied. EXECUTE is allowed nowhere; only execve needs it,
/// mapping a library does not.
std::uint64_t handled_rights(int version) {
  int bits = 13;                // ABI 1: EXECUTE … MAKE_SYM
  if (version >= 2) bits = 14;  // REFER
  if (version >= 3) bits = 15;  // TRUNCATE
  if (version >= 5) bits = 16;  // IOCTL_DEV
  return (1ull << bits) - 1;
}

/// Libraries, their data (time zones, certificates, locales), and what resolver, NSS, TLS and Kerberos read in /etc.
constexpr const char* kSystem[] = {
    "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache",
    // resolver and NSS
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf", "/etc/nsswitch.conf", "/etc/services",
    "/etc/protocols", "/etc/networks", "/etc/passwd", "/etc/group", "/etc/mime.types",
    // TLS: never /etc/ssl/private
    "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem", "/etc/pki/tls/certs", "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/gnutls",
    // time zones, Kerberos: never /etc/krb5.keytab
    "/etc/localtime", "/etc/timezone", "/etc/krb5.conf", "/etc/krb5.conf.d", "/etc/gss",
    // what runtimes (glibc, Go, malloc libraries, OpenSSL) ask the kernel
    "/dev/random", "/dev/urandom", "/dev/zero", "/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage",
    "/sys/kernel/mm/hugepages"};

/// A rule is bound to an inode, and the kernel makes these inodes again after it has forgotten them. So their
/// descriptors stay open.
constexpr const char* kPinned[] = {"/proc/self",
                                   "/proc/cpuinfo",
                                   "/proc/meminfo",
                                   "/proc/stat",
                                   "/proc/sys/vm/overcommit_memory",
                                   "/proc/sys/vm/max_map_count",
                                   "/proc/sys/net/core/somaxconn",
                                   "/proc/sys/kernel/random/uuid",
                                   "/proc/sys/kernel/random/boot_id",
                                   "/proc/sys/kernel/cap_last_cap",
                                   "/proc/sys/kernel/osrelease",
                                   "/proc/sys/kernel/pid_max",
                                   "/proc/sys/crypto/fips_enabled"};

Status allow(int ruleset, int path, std::uint64_t rights, const std::string& name) {
  struct stat st {};
  if (::fstat(path, &st) != 0) return fail(Code::denied, fmt::format("worker: {}: {}", name, std::strerror(errno)));
  if (!S_ISDIR(st.st_mode)) rights &= ~kReadDir;
  const PathBeneath rule{rights, path};
  if (::syscall(SYS_landlock_add_rule, ruleset, kRulePathBeneath, &rule, 0) == 0) return {};
  return fail(Code::denied, fmt::format("worker: landlock_add_rule for {}: {}", name, std::strerror(errno)));
}

/// Adds a rule for a path. A path that does not exist, or that this user may not open, needs none.
Status allow_path(int ruleset, const std::string& path, std::uint64_t rights) {
  const Descriptor at(::open(path.c_str(), O_PATH | O_CLOEXEC));
  return at.fd < 0 ? Status{} : allow(ruleset, at.fd, rights, path);
}

/// Adds a rule for a path of the settings, whose links the agent has resolved. A link that somebody put there since
/// then is not followed.
Status allow_unlinked(int ruleset, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const Descriptor at(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how));
  return at.fd < 0 ? Status{} : allow(ruleset, at.fd, kRead, path);
}

/// Adds a rule for the folder of resolv.conf in /run: it is often a link to a file there that is replaced by rename.
Status allow_resolver(int ruleset) {
  std::error_code missing;  // no resolver: no rule
  const fs::path folder = fs::canonical("/etc/resolv.conf", missing).parent_path();
  const bool own_folder = !missing && folder.parent_path() != "/" && folder.string().starts_with("/run/");
  return own_folder ? allow_path(ruleset, folder.string(), kRead) : Status{};
}

Status add_rules(int ruleset, std::uint64_t handled, const JailSpec& spec) {
  for (const char* path : kSystem) DRIFTD_CHECK(allow_path(ruleset, path, kRead));
  DRIFTD_CHECK(allow_resolver(ruleset));
  for (const char* path : kPinned) {
    const int pin = ::open(path, O_PATH | O_CLOEXEC);
    if (pin >= 0) DRIFTD_CHECK(allow(ruleset, pin, kRead, path));
  }
  DRIFTD_CHECK(allow_path(ruleset, "/dev/null", handled & (kReadFile | kWriteFile | kTruncate | kIoctlDev)));
  for (const auto& path : spec.read_paths) DRIFTD_CHECK(allow_unlinked(ruleset, path));
  return {};
}

}  // namespace

int landlock_version() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kVersionFlag);
  return version > 0 ? static_cast<int>(version) : 0;
}

std::string missing_landlock_reason() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kVersionFlag);
  if (version > 0) return {};
  if (errno == EOPNOTSUPP) return "switched off: lsm= of the kernel's command line lacks landlock";
  if (errno == EPERM || errno == EACCES)
    return "denied: a seccomp policy of the container or unit forbids landlock_create_ruleset";
  return "kernel";  // ENOSYS: older than 5.13, or built without landlock
}

Status enter_landlock(int version, const JailSpec& spec) {
  RulesetAttr attr{};
  attr.handled_fs = handled_rights(version);
  if (version >= 6) attr.scoped = kScopeAbstractSockets | kScopeSignals;
  const std::size_t known = version >= 6   ? sizeof attr
                            : version >= 4 ? 2 * sizeof(std::uint64_t)
                                           : sizeof(std::uint64_t);
  const Descriptor ruleset(::syscall(SYS_landlock_create_ruleset, &attr, known, 0));
  if (ruleset.fd < 0)
    return fail(Code::denied, fmt::format("worker: landlock_create_ruleset: {}", std::strerror(errno)));
  DRIFTD_CHECK(add_rules(ruleset.fd, attr.handled_fs, spec));
  if (::syscall(SYS_landlock_restrict_self, ruleset.fd, 0) == 0) return {};
  return fail(Code::denied, fmt::format("worker: landlock_restrict_self: {}", std::strerror(errno)));
}

}  // namespace driftd::worker::jail
