// SPDX-License-Identifier: Apache-2.0
#include "store/mark.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <fstream>

#include "base/digest.hpp"

namespace driftd::store {
namespace {

tl::unexpected<Error> failed(const char* what, const std::filesystem::path& file) {
  return fail(errno == EACCES ? Code::denied : Code::internal,
              std::string("cannot ") + what + " " + file.string() + ": " + std::strerror(errno));
}

/// Always has the same length and fits in one sector: after a power loss the line is the new one or the old one.
std::string render_line(const Mark& mark) {
  char text[160];
  std::snprintf(text, sizeof text,
                "driftd store mark v1 incarnation %020" PRIu64 " commits %020" PRIu64 " seq %020" PRId64
                " clock %016" PRIx64 " at %020" PRId64 " crc ",
                mark.incarnation, mark.commits, mark.seq, mark.hlc, mark.at_ns);
  char crc[10];
  std::snprintf(crc, sizeof crc, "%08" PRIx32 "\n", crc32c(text));
  return std::string(text) + crc;
}

}  // namespace

Result<MarkFile> MarkFile::open(const std::filesystem::path& file) {
  Descriptor fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return failed("open", file);
  DRIFTD_CHECK(check_private(file));
  return MarkFile(std::move(fd), file);
}

Status MarkFile::write(const Mark& mark) {
  const std::string line = render_line(mark);
  const auto written = ::pwrite(file_.get(), line.data(), line.size(), 0);
  if (written != static_cast<ssize_t>(line.size())) return failed("write", path_);
  return {};
}

Status MarkFile::sync() {
  if (::fsync(file_.get()) != 0) return failed("fsync", path_);
  return {};
}

Result<Mark> read_mark(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return fail(Code::not_found, "no " + file.string());
  DRIFTD_CHECK(check_private(file));
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  Mark mark;
  const int fields = std::sscanf(line.c_str(),
                                 "driftd store mark v1 incarnation %" SCNu64 " commits %" SCNu64 " seq %" SCNd64
                                 " clock %" SCNx64 " at %" SCNd64,
                                 &mark.incarnation, &mark.commits, &mark.seq, &mark.hlc, &mark.at_ns);
  if (fields == 5 && line + "\n" == render_line(mark)) return mark;
  return fail(Code::corrupt, file.string() + " is not the mark of a store: cut, changed or empty");
}

}  // namespace driftd::store
