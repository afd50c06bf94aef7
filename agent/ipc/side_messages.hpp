// SPDX-License-Identifier: Apache-2.0
// Messages beside the calls, like those in messages.hpp.
#pragma once

#include <string>

#include "ipc/wire_fields.hpp"

namespace driftd::ipc {

struct LogLine {
  std::int32_t level = 0;
  std::string text;
};
template <class A>
void fields(A& a, LogLine& v) {
  a(v.level, v.text);
}
struct Gauge {
  std::string name, value;  ///< value as decimal text
};
template <class A>
void fields(A& a, Gauge& v) {
  a(v.name, v.value);
}
struct Credit {
  std::uint64_t bytes = 0;
};
template <class A>
void fields(A& a, Credit& v) {
  a(v.bytes);
}
struct PermitRequest {
  std::uint64_t ticket = 0;
  std::string bucket;
  std::uint32_t tokens = 1;
};
template <class A>
void fields(A& a, PermitRequest& v) {
  a(v.ticket, v.bucket, v.tokens);
}
struct PermitAnswer {
  std::uint64_t ticket = 0;
  Code code = Code::ok;
};
template <class A>
void fields(A& a, PermitAnswer& v) {
  a(v.ticket, v.code);
}

}  // namespace driftd::ipc
