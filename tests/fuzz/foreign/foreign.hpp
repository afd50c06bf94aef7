// SPDX-License-Identifier: Apache-2.0
// Parses foreign data as the product does. Each function returns when it has parsed or rejected its text. A crash, a
// hang, or memory beyond the bound is a finding. An exception of a provider is not a finding, because the SDK's barrier
// turns it into a diagnostic. Promised properties are asserted with `require`.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace driftd::fuzz {

struct Target {
  const char* name;  ///< name of the corpus folder and of the fuzzer's binary
  void (*read)(std::string_view);
  std::size_t max_bytes;  ///< maximum of heap bytes for one text of the corpus
};

/// Returns every target. tests/fuzz/target/CMakeLists.txt lists the same names.
std::span<const Target> targets();
const Target* find_target(std::string_view name);

/// Aborts the process if a promise is broken, both in a fuzzer and in a test.
void require(bool holds, const char* promise);

void yaml(std::string_view text);
void json(std::string_view text);
void properties(std::string_view text);
void pem(std::string_view text);
void ssh(std::string_view text);
void address(std::string_view text);
void quantity(std::string_view text);
void hcl(std::string_view text);
void sql(std::string_view text);
void words(std::string_view text);
void path(std::string_view text);
void schema(std::string_view text);
void body(std::string_view text);
void config(std::string_view text);
void helm(std::string_view text);
void listing(std::string_view text);
void prism(std::string_view text);
void tfstate(std::string_view text);
void redis_acl(std::string_view text);
void redis_info(std::string_view text);
void postgres(std::string_view text);
void kafka(std::string_view text);

}  // namespace driftd::fuzz
