// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/result.hpp"

namespace driftd {

namespace asio = boost::asio;

/// A coroutine of the core thread. g++ 12 destroys some temporaries of a co_await expression twice (seen with
/// AddressSanitizer): closures with captures and aggregates made in place, `{}` included. So: named functions with
/// parameters by value; arguments are locals that are moved, or results of calls; no capturing lambda coroutines; no
/// `?:` around co_await.
template <class T>
using Task = asio::awaitable<T>;

namespace detail {
template <class F>
/// Returns f(), as a coroutine of whatever executor it is spawned on.
Task<std::invoke_result_t<F>> call(F f) {
  co_return f();
}
}  // namespace detail

/// Runs `f` on `executor` (store, io, diff) and resumes the caller on its own executor with the result, which must be
/// default-constructible. `f` owns what it uses.
template <class F>
/// What `f` throws comes out of it.
Task<std::invoke_result_t<F>> run_on(asio::any_io_executor executor, F f) {
  co_return co_await asio::co_spawn(executor, detail::call<F>(std::move(f)), asio::use_awaitable);
}

}  // namespace driftd
