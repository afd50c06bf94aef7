// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "terraform/state.hpp"

namespace driftd::terraform {

/// What is remembered of the last reading: enough to tell "unchanged" without reading, and what a new one did to it.
struct Cursor {
  std::string stamp;                          ///< the source's
  std::string history;                        ///< of the last reading; it stays until a higher serial comes
  Head head;                                  ///< lineage, serial, digest, encrypted
  std::set<std::string> reported_backends{};  ///< names of the backends that were reported_backends of; a cursor has
                                              ///< room for some of them
};

std::string render(const Cursor& cursor, const std::string& fingerprint);
/// Empty where the text is none, or was made under settings of another fingerprint.
Cursor parse_cursor(const std::string& text, const std::string& fingerprint);

}  // namespace driftd::terraform
