// SPDX-License-Identifier: Apache-2.0
// The templates of chat messages: what they can say, and what is said of one that is wrong.
#include <gmock/gmock.h>

#include "unit/chat/chat_fixture.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;

TEST(ChatTemplate, EveryMistakeIsNamedWithItsPlace) {
  const std::pair<std::string, std::string> mistakes[] = {
      {"a: \"x {{ titled }}\"\n", "own.yaml:1:7: there is no field 'titled'; expected 'title'"},
      {"a:\n  - \"{{ drift.id }}\"\n", "own.yaml:2:6: the field 'drift.id' exists only inside `$each: drifts`"},
      {"a: \"{{ title\"\n", "own.yaml:1:5: `{{` has no `}}`"},
      {"a: \"{{ drifts }}\"\n", "'drifts' is a list and cannot be a text"},
      {"a: [ { $each: title } ]\n", "own.yaml:1:15: 'title' is a text and cannot be repeated; expected drifts"},
      {"a: [ { $if: nothing } ]\n", "own.yaml:1:13: '$if' must name a field that exists here"},
      {"a: { $each: drifts }\n", "own.yaml:1:6: '$each' is only used in an item of a list"},
      {"a: [ { $for: drifts } ]\n", "own.yaml:1:8: '$for' means nothing in a template"},
      {"a: [ { $do: x } ]\n", "own.yaml:1:13: '$do' must be a list"},
      {"a: 1\na: 2\n", "own.yaml:2:1: 'a' stands twice in one map"},
      {"a: [ { url: \"https://{{ title }}\" } ]\n", "which then would choose where a link leads"},
      {"- a\n", "own.yaml:1:1: the template is not a map"},
      {"a: [\n", "own.yaml:2:1"},
      {"", "the template is not a map"},
  };
  for (const auto& [text, expected] : mistakes) EXPECT_THAT(refused(text), HasSubstr(expected)) << text;
}

TEST(ChatTemplate, SeveralMistakesAreReportedAtOnce) {
  const std::string found = refused("a: \"{{ x }} {{ y }}\"\nb: \"{{ z }}\"\n");
  for (const char* name : {"'x'", "'y'", "'z'"}) EXPECT_THAT(found, HasSubstr(name));
}

TEST(ChatTemplate, NumbersTextsAndConditionsAreWhatTheyLookLike) {
  const auto settings = own(ChatFormat::generic,
                            "a: 1.5\nb: true\nc: \"1.5\"\nd: null\ne: \"n {{ count }}\"\nf: \"{{ count }}\"\n"
                            "g:\n  - { $if: more, x: \"{{ more }}\" }\n  - { $if: remark, x: y }\n"
                            "h:\n  - $each: drifts\n    $do: [ \"{{ drift.id }}\", \"-\" ]\n");
  EXPECT_EQ(rendered(settings, notification(2)),
            R"({"a":1.5,"b":true,"c":"1.5","d":null,"e":"n 2","f":2,"g":[],"h":["d-0","-","d-1","-"]})");
}

TEST(ChatTemplate, AValueCannotChangeTheStructure) {
  ChatMessage message = notification(1, "\"}],\"blocks\":[{\"type\":\"x");
  message.title = "{{ agent }} \\ \" \u2028";
  const auto settings =
      own(ChatFormat::generic, "a: \"{{ title }}\"\nb: [ { $each: drifts, m: \"{{ drift.message }}\" } ]\n");
  const auto value = core::parse(rendered(settings, message));
  ASSERT_TRUE(value);
  EXPECT_EQ(*value->find("a")->string(), message.title) << "a field in a value is not filled in";
  EXPECT_EQ(*value->find("b")->array()->front().find("m")->string(), message.drifts.front().message);
}

TEST(ChatTemplate, BuiltInOnesAreAlsoWhatAUserMayStartFrom) {
  for (const auto format : {ChatFormat::generic, ChatFormat::slack, ChatFormat::teams}) {
    EXPECT_EQ(own(format, std::string(config::builtin_chat_template(format))), builtin(format));
  }
}

}  // namespace
}  // namespace driftd::test
