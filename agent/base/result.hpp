// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace driftd {

/// What a caller must do about a failure; the same set and numbers as driftd_status of plugin-api.
enum class Code : std::int32_t {
  ok = 0,           ///< never the code of an Error
  invalid,          ///< the request or a setting is wrong: change it
  denied,           ///< a right is missing: grant it
  unauthenticated,  ///< the credentials are not accepted
  not_found,        ///< there is no such thing
  conflict,         ///< it changed meanwhile, or is in use: look again
  throttled,        ///< too many requests: wait for retry_after_ms
  unavailable,      ///< no answer at present: try again later
  deadline,         ///< it took too long
  cancelled,        ///< the caller or a stop ended it
  cursor_expired,   ///< the position is gone: read everything
  unsupported,      ///< this build, server or plugin does not have it
  budget,           ///< a limit is reached
  corrupt,          ///< what was read is damaged or cannot be understood
  internal          ///< a defect of driftd or of a plugin
};

/// `not_found`, `cursor_expired` ... as logs, JSON and metrics print it.
std::string_view render(Code code);

/// A failure: what, where (`driftd.yaml:14:17`), expected, found, next step. Never contains a secret.
struct Error {
  Code code = Code::internal;
  std::string message;              ///< for people, in one line
  std::int64_t retry_after_ms = 0;  ///< throttled: when to try again; 0 if not known
};

/// A value or the reason why there is none. The compiler refuses a call whose Result nobody looks at; g++ 12 does not
/// see that behind a co_await.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result() = default;
  Result(tl::expected<T, Error> other)
      : tl::expected<T, Error>(std::move(other)) {}  // converts what map() and and_then() return
};
using Status = Result<void>;  ///< success, or the reason why not

/// Both return a failure that converts to any Result.
inline tl::unexpected<Error> fail(Code code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace driftd

/// Make a name that is used once, so that several of the macros below may stand in one scope.
#define DRIFTD_CAT2(a, b) a##b
#define DRIFTD_CAT(a, b) DRIFTD_CAT2(a, b)
#define DRIFTD_TRY2(tmp, decl, expr)                               \
  auto tmp = (expr);                                               \
  if (!tmp) return ::tl::unexpected<::driftd::Error>(tmp.error()); \
  decl = std::move(*tmp)
#define DRIFTD_CO_TRY2(tmp, decl, expr)                               \
  auto tmp = (expr);                                                  \
  if (!tmp) co_return ::tl::unexpected<::driftd::Error>(tmp.error()); \
  decl = std::move(*tmp)
/// `DRIFTD_TRY(auto x, f());` declares x from a Result or returns its error.
/// It is several statements, so it cannot be the body of an `if` without braces.
#define DRIFTD_TRY(decl, expr) DRIFTD_TRY2(DRIFTD_CAT(driftd_try_, __LINE__), decl, expr)
/// The same inside a coroutine: `DRIFTD_CO_TRY(auto x, co_await f());`
#define DRIFTD_CO_TRY(decl, expr) DRIFTD_CO_TRY2(DRIFTD_CAT(driftd_try_, __LINE__), decl, expr)
/// For a Status: returns its error, or continues.
#define DRIFTD_CHECK(expr) \
  if (auto driftd_status_ = (expr); !driftd_status_) return ::tl::unexpected<::driftd::Error>(driftd_status_.error())
/// The same inside a coroutine.
#define DRIFTD_CO_CHECK(expr) \
  if (auto driftd_status_ = (expr); !driftd_status_) co_return ::tl::unexpected<::driftd::Error>(driftd_status_.error())
