// SPDX-License-Identifier: Apache-2.0
// What strangers write, read as the product reads it. Each function returns when it has read or refused its text; a
// crash, a hang, or memory beyond the bound is a finding. Exceptions of a provider are none: the SDK's barrier makes
// diagnostics of them. What a property promises is asserted with `require`.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace driftd::fuzz {

struct Target {
  const char* name;  ///< of the corpus folder and of the fuzzer's binary
  void (*read)(std::string_view);
  std::size_t max_bytes;  ///< of heap that one text of the corpus may take
};

/// Every target; tests/fuzz/target/CMakeLists.txt names the same.
std::span<const Target> targets();
const Target* find_target(std::string_view name);

/// Ends the process where a promise is broken, in a fuzzer and in a test alike.
void require(bool holds, const char* promise);

void yaml(std::string_view text);
void json(std::string_view text);
void properties(std::string_view text);
void pem(std::string_view text);
void ssh(std::string_view text);
void address(std::string_view text);
void quantity(std::string_view text);
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
