// SPDX-License-Identifier: Apache-2.0
// 100 configurations, each with one mistake: refused at the right place, with the right words. mutations.txt holds
// them.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "config/config.hpp"

namespace driftd::config {
namespace {

struct Mutation {
  std::string name, from, to, at, message;
};
void PrintTo(const Mutation& mutation, std::ostream* out) { *out << mutation.name; }

std::string read(const std::string& name) {
  std::ifstream in(std::string(DRIFTD_SOURCE_DIR) + "/tests/golden/config/" + name, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// \n, \t, \0, \xHH and \\ in a column.
std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    if (c == 'x') {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c == '0' ? '\0' : c;
    }
  }
  return out;
}

std::vector<Mutation> mutations() {
  std::istringstream in(read("mutations.txt"));
  std::vector<Mutation> out;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> columns;
    std::size_t from = 0;
    for (std::size_t bar = 0; bar != std::string::npos; from = bar + 3) {
      bar = line.find(" | ", from);
      columns.push_back(line.substr(from, bar == std::string::npos ? bar : bar - from));
      if (bar == std::string::npos) break;
    }
    columns.resize(5);
    out.push_back({columns[0], unescape(columns[1]), unescape(columns[2]), columns[3], columns[4]});
  }
  return out;
}

std::string mutated(const Mutation& mutation) {
  std::string text = read("good.yaml");
  if (mutation.from == "<ALL>") return mutation.to;
  if (mutation.from == "<END>") return text + mutation.to;
  const std::size_t at = text.find(mutation.from);
  EXPECT_NE(at, std::string::npos) << mutation.name << ": '" << mutation.from << "' is not in good.yaml";
  return at == std::string::npos ? text : text.replace(at, mutation.from.size(), mutation.to);
}

LoadOptions environment() {
  LoadOptions options;
  options.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "REDIS_PASSWORD" || name == "HOOK_SECRET") return "canary-of-the-environment";
    return std::nullopt;
  };
  return options;
}

class Mutated : public testing::TestWithParam<Mutation> {};

TEST_P(Mutated, ConfigIsRefusedAtTheRightPlace) {
  const auto& mutation = GetParam();
  const auto loaded = parse(mutated(mutation), "driftd.yaml", environment());
  ASSERT_FALSE(loaded.has_value()) << "was accepted";
  bool found = false;
  for (const auto& error : loaded.error()) {
    const std::string at = std::to_string(error.at.line) + ":" + std::to_string(error.at.column);
    found |= at == mutation.at && render(error).find(mutation.message) != std::string::npos;
  }
  const std::string all = render(loaded.error());
  EXPECT_TRUE(found) << "expected at " << mutation.at << ": " << mutation.message << "\ngot:\n" << all;
  EXPECT_EQ(all.find("canary"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Golden, Mutated, testing::ValuesIn(mutations()),
                         [](const auto& info) { return info.param.name; });

TEST(Mutations, GoodConfigIsAccepted) {
  const auto loaded = parse(read("good.yaml"), "driftd.yaml", environment());
  EXPECT_TRUE(loaded.has_value()) << render(loaded.error());
}

TEST(Mutations, ThereAreAHundredWithNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const auto& mutation : mutations()) names.insert(mutation.name);
  EXPECT_GE(names.size(), 100u);
  EXPECT_EQ(names.size(), mutations().size());
}

}  // namespace
}  // namespace driftd::config
