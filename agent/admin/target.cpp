// SPDX-License-Identifier: Apache-2.0
// Parses request targets such as /v1/drifts?backend=a%20b.
#include "admin/api.hpp"
#include "admin/percent.hpp"

namespace driftd::admin {
Result<Request> parse_target(std::string_view target) {
  Request out;
  if (target.empty() || target.front() != '/') return fail(Code::invalid, "the request target must start with /");
  const std::size_t mark = target.find('?');
  DRIFTD_TRY(out.path, percent_decoded(target.substr(0, mark), false));
  std::string_view rest = mark == std::string_view::npos ? std::string_view{} : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    DRIFTD_TRY(std::string name, percent_decoded(pair.substr(0, equals), true));
    DRIFTD_TRY(std::string value, percent_decoded(pair.substr(std::min(pair.size(), equals + 1)), true));
    if (!name.empty()) out.query[std::move(name)] = std::move(value);
  }
  return out;
}

}  // namespace driftd::admin
