// SPDX-License-Identifier: Apache-2.0
// Asio and Beast compiled once instead of into every file (two cores are few).
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
