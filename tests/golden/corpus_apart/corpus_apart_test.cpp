// SPDX-License-Identifier: Apache-2.0
// Pairs that were written without the schemas: what cries and what is missed on material that nobody here had seen.
#include <iostream>
#include <map>
#include <set>

#include "core/redact.hpp"
#include "golden/corpus/pairs.hpp"

namespace driftd::core {
namespace {

const std::filesystem::path kSource = DRIFTD_SOURCE_DIR;
const std::filesystem::path kFolder = kSource / "tests/golden/corpus_apart";

/// How the two bodies of a pair are compared: as `driftd diff --schema` does it, or the first one as a declaration,
/// which says nothing of attributes that it does not have.
enum class As { diff, declaration };

struct Row {
  int clean = 0, cried = 0, twins = 0, missed = 0, elsewhere = 0;
};

/// The body as the agent would store it, with digests of what is sensitive.
Value sealed(const Value& body, const ResourceId& id, const KindSchema& schema, const RedactionKeys& keys) {
  const auto redacted = redact(render(body), id, schema, {}, keys.worker);
  EXPECT_TRUE(redacted) << redacted.error().message;
  const auto text = seal(redacted.value_or("{}"), keys.store);
  EXPECT_TRUE(text) << text.error().message;
  return parse(text.value_or("{}")).value_or(Value());
}

Difference compare_as(As how, const Value& pair, const KindSchema& schema, std::vector<Step>& steps) {
  const Value &desired = *pair.find("desired"), &live = *pair.find("live");
  if (how == As::declaration) return compare(pair, desired, live, schema, steps);
  const RedactionKeys keys{{"00000000", {}}, {"11111111", {}}};
  DiffOptions options;
  options.id = {schema.kind(), "offline"};
  options.keys = &keys;
  options.old_revision = schema.revision();
  options.trace = &steps;
  return diff(sealed(desired, options.id, schema, keys), sealed(live, options.id, schema, keys), schema, options);
}

/// Prints what comes out of a pair in another way than wanted, and counts it.
void judge(As how, const Value& pair, Row& row) {
  const auto schema = schema_of(kSource, pair);
  ASSERT_TRUE(schema) << schema.error().message;
  std::vector<Step> steps;
  const Difference found = compare_as(how, pair, **schema, steps);
  const auto tell = [&](const char* what) {
    std::cout << what << " " << text(pair, "type") << ", " << text(pair, "name") << ": wanted " << text(pair, "is")
              << ", found " << verdict(found) << explanation(steps) << "\n";
  };
  const bool cries = !found.changes.empty();
  if (text(pair, "expected") == "equal") {
    ++row.clean;
    row.cried += cries ? 1 : 0;
    if (cries) tell("CRIED");
    return;
  }
  ++row.twins;
  row.missed += cries ? 0 : 1;
  if (!cries) tell("MISSED");
  const std::string is = text(pair, "is");
  row.elsewhere += cries && !is.empty() && verdict(found) != is ? 1 : 0;
}

/// Judges each pair of the files of a folder, and prints a table of its groups.
Row judge_folder(As how, const std::filesystem::path& folder) {
  std::map<std::string, Row> table;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const Value root = load(entry.path());
    for (const auto& pair : *root.find("pairs")->array()) judge(how, pair, table[entry.path().stem().string()]);
  }
  Row sum;
  for (const auto& [group, row] : table) {
    std::cout << group << ": " << row.clean << " clean, " << row.cried << " cried; " << row.twins << " twins, "
              << row.missed << " missed, " << row.elsewhere << " with another path or more than one\n";
    sum = {sum.clean + row.clean, sum.cried + row.cried, sum.twins + row.twins, sum.missed + row.missed,
           sum.elsewhere + row.elsewhere};
  }
  return sum;
}

/// The most that may come out wrong of a set of pairs; `missed` of declarations are changes of what is not declared.
struct Bound {
  const char* folder;
  int pairs, cried, missed, cried_declared, missed_declared;
};

class CorpusApart : public testing::TestWithParam<Bound> {};

TEST_P(CorpusApart, NoMoreCriesOrIsMissedThanBefore) {
  const Bound& bound = GetParam();
  const Row plain = judge_folder(As::diff, kFolder / bound.folder);
  EXPECT_EQ(plain.clean + plain.twins, bound.pairs);
  EXPECT_LE(plain.cried, bound.cried);
  EXPECT_LE(plain.missed, bound.missed);
  const Row declared = judge_folder(As::declaration, kFolder / bound.folder);
  EXPECT_LE(declared.cried, bound.cried_declared);
  EXPECT_LE(declared.missed, bound.missed_declared);
}

INSTANTIATE_TEST_SUITE_P(Sets, CorpusApart,
                         testing::Values(Bound{"first", 300, 0, 0, 0, 2}, Bound{"second", 140, 1, 0, 1, 3},
                                         Bound{"third", 328, 0, 0, 0, 25}, Bound{"fourth", 328, 0, 0, 0, 17},
                                         Bound{"fifth", 216, 2, 0, 1, 15}, Bound{"sixth", 408, 0, 0, 0, 30},
                                         Bound{"seventh", 408, 1, 0, 1, 21}, Bound{"eighth", 408, 3, 0, 0, 25},
                                         Bound{"ninth", 408, 2, 0, 1, 23}, Bound{"tenth", 408, 0, 0, 0, 37},
                                         Bound{"eleventh", 408, 1, 0, 2, 31}, Bound{"twelfth", 460, 0, 0, 0, 40},
                                         Bound{"thirteenth", 272, 0, 0, 1, 30}, Bound{"fourteenth", 112, 1, 0, 2, 30},
                                         Bound{"fifteenth", 112, 0, 0, 1, 30}, Bound{"sixteenth", 112, 1, 0, 2, 30}),
                         [](const auto& info) { return std::string(info.param.folder); });

}  // namespace
}  // namespace driftd::core
