// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace driftd::consumer {

/// What the caller does about a failure.
enum class Code {
  invalid,      ///< the input is wrong: correct it, a retry does not help
  not_found,    ///< what was named does not exist
  denied,       ///< a right is missing
  unavailable,  ///< retry later
  deadline,     ///< the time was over: retry later
  internal,     ///< a fault of this library or of the application's slot
};

/// A failure. `message` says what, where, what was expected and what was found. It contains no secret.
struct Error {
  Code code = Code::internal;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(Code code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace driftd::consumer
