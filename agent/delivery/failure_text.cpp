// SPDX-License-Identifier: Apache-2.0
#include "delivery/failure_text.hpp"

#include "base/escape.hpp"

namespace driftd::delivery {
namespace {

constexpr std::size_t kErrorLength = 512;

}  // namespace

std::string brief(const std::string& error) { return escaped(error.substr(0, kErrorLength)); }

std::string about(const core::StoredEvent& event, const std::string& detail) {
  const std::string subject = event.resource.empty() ? event.backend : event.backend + "/" + event.resource;
  return brief(detail + " (event " + event.stamp.id + (subject.empty() ? "" : ", " + subject) + ")");
}

}  // namespace driftd::delivery
