// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace driftd::test {

/// A row of the table in docs/driftd-check.md, or of driftd-check-sinks.md.
struct DocumentedCheck {
  std::string id, level;
  std::vector<std::string> providers;
};
/// Returns the rows of the table in this page of docs/. Throws if it has none.
std::vector<DocumentedCheck> documented_checks(const std::string& page = "driftd-check.md");

/// A faulty provider or sink, and the checks that it breaks: id → level.
struct FaultyProvider {
  std::string name;
  std::map<std::string, std::string> breaks;
  friend std::ostream& operator<<(std::ostream& out, const FaultyProvider& a) { return out << a.name; }
};
/// Returns the faulty providers of the table, and those that it does not list with the check that finds each.
std::vector<FaultyProvider> providers();

/// Returns the faulty sinks of the table in docs/driftd-check-sinks.md.
std::vector<FaultyProvider> sinks();
/// Returns a part of the reason that driftd-check must give for a faulty sink. Empty if it is not known.
std::string reason_of_sink(const std::string& sink);

/// Returns what driftd-check must say about a faulty provider: a part of its reason. Empty if the
/// provider is not known.
std::string reason_of(const std::string& provider);

/// Returns the providers in which driftd-check finds nothing: sound ones, and those that only fail in a running agent.
const std::vector<std::string>& without_findings();

}  // namespace driftd::test
