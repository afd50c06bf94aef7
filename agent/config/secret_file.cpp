// SPDX-License-Identifier: Apache-2.0
#include "config/secret_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace driftd::config {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxSecretBytes = 65'536;
constexpr std::int64_t kSettledAgeNs = 1'000'000'000;  // a file that was written longer ago counts as complete

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

FileMark mark(const struct stat& st) {
  return {st.st_dev, st.st_ino, st.st_size, nanoseconds(st.st_mtim), nanoseconds(st.st_ctim), S_ISREG(st.st_mode)};
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

/// Reads one byte more than a secret may have, so that a larger file is noticed.
bool read_bytes(int fd, std::string& out) {
  out.resize(kMaxSecretBytes + 1);
  std::size_t at = 0;
  while (at < out.size()) {
    const ssize_t got = ::read(fd, out.data() + at, out.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    at += static_cast<std::size_t>(got);
  }
  out.resize(at);
  return true;
}

/// The result of reading a file once.
struct Reading {
  Result<SecretText> text;
  std::optional<FileMark> mark;  ///< empty if it could not be opened
  bool torn = false;             ///< it was written or replaced during the read
};

Result<SecretText> check_secret(const std::filesystem::path& file, SecretText read) {
  const std::string named = "secret file " + file.string();
  const std::string& written = read.rights.written;
  if (!written.empty()) return fail(Code::denied, named + " is not used, because others may write it: " + written);
  if (read.text.ends_with('\n')) read.text.pop_back();
  if (read.text.ends_with('\r')) read.text.pop_back();
  if (read.text.empty()) return fail(Code::invalid, named + " is empty");
  if (read.text.size() > kMaxSecretBytes) return fail(Code::invalid, named + " has more than 64 KiB");
  return read;
}

enum class Kinds { any, regular, still_regular };  ///< of files: a FIFO or device is refused, and not waited for

Reading read_once(const std::filesystem::path& file, Kinds kinds) {
  const int flags = kinds == Kinds::any ? 0 : O_NONBLOCK | O_NOCTTY;
  const std::string named = "secret file " + file.string();
  const auto unreadable = [&] { return fail(Code::unavailable, named + " cannot be read: " + std::strerror(errno)); };
  SecretText out;
  struct stat before {};
  struct stat after {};
  const Descriptor opened{::open(file.c_str(), O_RDONLY | O_CLOEXEC | flags)};
  if (opened.fd < 0 || ::fstat(opened.fd, &before) != 0) return {unreadable(), std::nullopt};
  if (kinds != Kinds::any && !S_ISREG(before.st_mode)) {
    const char* more = kinds == Kinds::still_regular ? " any more" : "";
    return {fail(Code::invalid, named + " is not a regular file" + more), mark(before)};
  }
  if (!read_bytes(opened.fd, out.text) || ::fstat(opened.fd, &after) != 0) return {unreadable(), mark(before)};
  out.mark = mark(after);
  const auto whole = std::min<std::size_t>(static_cast<std::size_t>(after.st_size), kMaxSecretBytes + 1);
  const bool torn = mark(before) != out.mark || out.text.size() < whole;
  if (out.mark.regular && torn) return {fail(unsettled_error(file)), out.mark, true};
  auto rights = inspect_rights(file, opened.fd);
  if (!rights) return {fail(Code::unavailable, named + " was replaced while it was read"), out.mark, true};
  out.rights = std::move(*rights);
  const FileMark as_read = out.mark;
  return {check_secret(file, std::move(out)), as_read};
}

/// Returns true if the file was not written recently. A time in the future counts as recent.
bool is_old(const FileMark& mark) {
  const auto now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch());
  return now.count() - mark.written_ns >= kSettledAgeNs;
}

using Wait = std::function<void(milliseconds)>;

Result<SecretText> read_settled(const std::filesystem::path& file, Kinds kinds, const Wait& wait) {
  Reading now = read_once(file, kinds);
  for (auto waited = milliseconds(0); waited < kMaxSettleTime; waited += kSettleTime) {
    if (!now.mark || !now.mark->regular || (!now.torn && is_old(*now.mark))) return std::move(now.text);
    if (wait) {
      wait(kSettleTime);
    } else {
      std::this_thread::sleep_for(kSettleTime);
    }
    Reading later = read_once(file, kinds);
    if (!later.torn && later.mark == now.mark) return std::move(later.text);
    now = std::move(later);
  }
  return fail(unsettled_error(file));
}

}  // namespace

Error unsettled_error(const std::filesystem::path& file) {
  return Error{Code::unavailable, "secret file " + file.string() + " is being written: it is never the same for " +
                                      std::to_string(kSettleTime.count()) + " ms"};
}

std::string replaceable_warning(const std::filesystem::path& file, const Rights& rights) {
  return "others may put another file in the place of secret file " + file.string() + ": " + rights.replaced;
}

std::optional<FileMark> mark_of(const std::filesystem::path& file) {
  struct stat st {};
  if (::stat(file.c_str(), &st) != 0) return std::nullopt;
  return mark(st);
}

Result<SecretText> read_secret_file(const std::filesystem::path& file, const Wait& wait) {
  return read_settled(file, Kinds::any, wait);
}

Result<SecretText> read_regular_secret_file(const std::filesystem::path& file) {
  return read_settled(file, Kinds::regular, {});
}

Result<SecretText> reread_secret_file(const std::filesystem::path& file) {
  return read_once(file, Kinds::still_regular).text;
}

}  // namespace driftd::config
