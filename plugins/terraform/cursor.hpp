// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "terraform/state.hpp"

namespace driftd::terraform {

/// What is remembered of the last reading, so that an unchanged state is not read again and a newer one can be compared
/// with it.
struct Cursor {
  std::string stamp;                          ///< stamp of the source
  std::string history;                        ///< history of the last reading; it stays until a higher serial comes
  Head head;                                  ///< lineage, serial, digest, encrypted
  std::set<std::string> reported_backends{};  ///< backends whose registrations were emitted; a cursor holds only some
                                              ///< of them
};

/// Returns a text with a checksum, so that a damaged one is not taken. It names 200 backends at most.
std::string render(const Cursor& cursor, const std::string& fingerprint);
/// Returns an empty cursor if the text is not a cursor or was made under settings of another fingerprint.
Cursor parse_cursor(const std::string& text, const std::string& fingerprint);

}  // namespace driftd::terraform
