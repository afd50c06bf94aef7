// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "bounded_call.hpp"
#include "driftd/consumer/credentials.hpp"

namespace driftd::consumer {
namespace {

constexpr std::size_t kMaxValue = 1 << 20;
constexpr int kMaxHanging = 32;  ///< threads that wait for the kernel at once
constexpr int kMaxPasses = 5;

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

tl::unexpected<Error> failure(const CredentialReference& reference, Code code, const std::string& why) {
  return fail(code, render(reference) + ": " + why);
}

Result<Secret> read_value(const CredentialReference& reference) {
  // O_NONBLOCK: a FIFO must not make the call wait for a writer.
  const Descriptor file{::open(reference.name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.fd < 0) {
    const Code code = errno == ENOENT || errno == ENOTDIR ? Code::not_found
                      : errno == EACCES || errno == EPERM ? Code::denied
                                                          : Code::unavailable;
    return failure(reference, code, std::string("cannot be opened: ") + std::strerror(errno));
  }
  struct stat about {};
  if (::fstat(file.fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    return failure(reference, Code::invalid, "is not a regular file");
  }
  std::string text(kMaxValue + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure(reference, Code::unavailable, std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kMaxValue) return failure(reference, Code::invalid, "is larger than 1 MiB");
  text.resize(size);
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  if (text.empty()) return failure(reference, Code::invalid, "is empty");
  return Secret(std::move(text));
}

Result<std::vector<Secret>> read_all(const std::vector<CredentialReference>& references) {
  std::vector<Secret> out;
  for (const auto& reference : references) {
    auto value = read_value(reference);
    if (!value) return tl::unexpected<Error>(value.error());
    out.push_back(std::move(*value));
  }
  return out;
}

/// Reads until two passes agree: files that are swapped in between would otherwise give the old name with the new
/// password.
Result<std::vector<Secret>> read_together(const std::vector<CredentialReference>& references) {
  auto last = read_all(references);
  for (int pass = 1; last && references.size() > 1; ++pass) {
    auto again = read_all(references);
    if (!again || *again == *last) return again;
    if (pass == kMaxPasses) return failure(references[0], Code::unavailable, "the files change while they are read");
    last = std::move(again);
  }
  return last;
}

class FileResolver final : public CredentialResolver {
 public:
  Result<std::vector<Secret>> resolve(const std::vector<CredentialReference>& references,
                                      std::chrono::milliseconds max_time) override {
    if (references.empty()) return std::vector<Secret>{};
    const std::shared_ptr<void> running(nullptr, [hanging = hanging_](void*) { --*hanging; });
    if (hanging_->fetch_add(1) >= kMaxHanging) {
      return failure(references[0], Code::unavailable, "earlier reads of files have not returned; is a mount dead?");
    }
    const auto result = bounded_call<Result<std::vector<Secret>>>(
        [references, running] { return read_together(references); }, max_time);
    if (!result)
      return failure(references[0], Code::deadline, "was not read within " + std::to_string(max_time.count()) + " ms");
    return *result;
  }

 private:
  std::shared_ptr<std::atomic<int>> hanging_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace

std::unique_ptr<CredentialResolver> file_resolver() { return std::make_unique<FileResolver>(); }

}  // namespace driftd::consumer
