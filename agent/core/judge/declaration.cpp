// SPDX-License-Identifier: Apache-2.0
#include "core/judge/declaration.hpp"

#include "base/digest.hpp"

namespace driftd::core {

std::string describe(const Declaration& declaration) {
  const auto known = [&](const char* name) {
    const auto found = declaration.metadata.find(name);
    return found == declaration.metadata.end() ? std::string() : found->second;
  };
  std::string details = known("address");
  if (const std::string serial = known("serial"); !serial.empty()) {
    details += (details.empty() ? "since serial " : ", since serial ") + serial;
  }
  return "declared by " + declaration.source + (details.empty() ? "" : " (" + details + ")");
}

std::uint64_t generation_term(const std::string& source_uid, const Digest& body) {
  const Digest out = digest(1, {source_uid, std::to_string(body.low), std::to_string(body.high)});
  return out.low == 0 ? 1 : out.low;
}

std::uint64_t mix_declarations(std::uint64_t generation, std::uint64_t declaration_sum) {
  if (generation == 0 || declaration_sum == 0) return generation;
  const std::uint64_t out = generation ^ declaration_sum;
  return static_cast<std::uint32_t>(out) == 0 ? out ^ 1 : out;  // 0 is "never judged", also in the index's 32 bits
}

}  // namespace driftd::core
