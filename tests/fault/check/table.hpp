// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace driftd::test {

/// A row of the table in docs/driftd-check.md.
struct Row {
  std::string id, level;
  std::vector<std::string> animals;
};
/// Throws when the page has no such table.
std::vector<Row> documented_checks();

/// An animal and the checks that it breaks, id → level.
struct Animal {
  std::string name;
  std::map<std::string, std::string> breaks;
  friend std::ostream& operator<<(std::ostream& out, const Animal& a) { return out << a.name; }
};
/// Those of the table, and the rest of the zoo with the check that finds it.
std::vector<Animal> animals();

/// Files of the zoo that no check is for: sound ones, and those that only a running agent can meet.
const std::vector<std::string>& not_for_the_checker();

}  // namespace driftd::test
