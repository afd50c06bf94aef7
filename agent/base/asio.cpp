// SPDX-License-Identifier: Apache-2.0
// Compiles Asio and Beast once instead of in every file, which shortens the build.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
