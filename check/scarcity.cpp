// SPDX-License-Identifier: Apache-2.0
#include "check/scarcity.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "check/check.hpp"

namespace driftd::check {

std::vector<std::uint64_t> allocation_numbers(std::uint64_t last) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t n = 1; n <= last; n += 1 + n / 24) out.push_back(n);
  return out;
}

void raise_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

FewDescriptors::FewDescriptors(rlim_t left) {
  ::getrlimit(RLIMIT_NOFILE, &before_);
  const int next = ::fcntl(0, F_DUPFD_CLOEXEC, 3);
  if (next >= 0) ::close(next);
  const rlimit few{static_cast<rlim_t>(std::max(next, 3)) + left, before_.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &few) != 0) throw CheckNotMade(fmt::format("RLIMIT_NOFILE: {}", std::strerror(errno)));
}

FewDescriptors::~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

}  // namespace driftd::check
