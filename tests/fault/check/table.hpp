// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace driftd::test {

/// A row of the table in docs/driftd-check.md.
struct DocumentedCheck {
  std::string id, level;
  std::vector<std::string> providers;
};
/// Returns the rows of the table. Throws if the page has none.
std::vector<DocumentedCheck> documented_checks();

/// A faulty provider and the checks that it breaks: id → level.
struct FaultyProvider {
  std::string name;
  std::map<std::string, std::string> breaks;
  friend std::ostream& operator<<(std::ostream& out, const FaultyProvider& a) { return out << a.name; }
};
/// Returns the faulty providers of the table, and those that it does not list with the check that finds each.
std::vector<FaultyProvider> providers();

/// Returns what driftd-check must say about a faulty provider: a part of its reason. Empty if the
/// provider is not known.
std::string reason_of(const std::string& provider);

/// Returns the providers in which driftd-check finds nothing: sound ones, and those that only fail in a running agent.
const std::vector<std::string>& without_findings();

}  // namespace driftd::test
