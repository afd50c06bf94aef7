// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace driftd::test {

/// A row of the table in docs/driftd-check.md.
struct Row {
  std::string id, level;
  std::vector<std::string> providers;
};
/// Returns the rows. Throws if the page has no such table.
std::vector<Row> documented_checks();

/// A faulty provider and the checks that it breaks: id → level.
struct FaultyProvider {
  std::string name;
  std::map<std::string, std::string> breaks;
  friend std::ostream& operator<<(std::ostream& out, const FaultyProvider& a) { return out << a.name; }
};
/// Returns the faulty providers of the table, and those that it does not list with the check that finds each.
std::vector<FaultyProvider> providers();

/// Providers that break no check: sound ones, and those that only fail in a running agent.
const std::vector<std::string>& not_for_the_checker();

}  // namespace driftd::test
