// SPDX-License-Identifier: Apache-2.0
#include "engine/resource_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace driftd::engine {
namespace {

TEST(ResourceTable, AgreesWithAMapOverManyInsertionsAndErasures) {
  ResourceTable<int> table;
  std::map<std::uint64_t, int> model;
  std::mt19937 random(7);
  for (int step = 0; step < 200'000; ++step) {
    const std::uint64_t name = random() % 3'000;
    const Digest key = digest(1, {std::to_string(name)});
    if (random() % 3 == 0) {
      table.erase(key);
      model.erase(name);
    } else {
      const auto [value, fresh] = table.insert(key);
      EXPECT_EQ(fresh, !model.contains(name));
      *value = model[name] = step;
    }
  }
  ASSERT_EQ(table.size(), model.size());
  std::size_t seen = 0;
  table.for_each([&](const Digest&, int) { ++seen; });
  EXPECT_EQ(seen, model.size());
  for (std::uint64_t name = 0; name < 3'000; ++name) {
    const int* value = table.find(digest(1, {std::to_string(name)}));
    const auto known = model.find(name);
    ASSERT_EQ(value != nullptr, known != model.end()) << name;
    if (value != nullptr) {
      EXPECT_EQ(*value, known->second);
    }
  }
}

TEST(ResourceTable, APlaceThatWasErasedIsUsedAgainAndPointersStay) {
  ResourceTable<int> table;
  int* first = table.insert({1, 1}).first;
  *first = 41;
  for (std::uint64_t i = 2; i < 10'000; ++i) *table.insert({i, i}).first = 0;
  EXPECT_EQ(table.find({1, 1}), first);
  EXPECT_EQ(*first, 41);
  table.erase({5, 5});
  EXPECT_EQ(table.find({5, 5}), nullptr);
  EXPECT_EQ(*table.insert({20'000, 1}).first, 0);
  EXPECT_EQ(table.size(), 9'999u);
}

}  // namespace
}  // namespace driftd::engine
