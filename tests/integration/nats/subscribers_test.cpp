// SPDX-License-Identifier: Apache-2.0
// Which subscription receives what: the table of docs/subscribe.md, tried on a real server.
#include <gtest/gtest.h>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "bus.hpp"

namespace driftd::test {
namespace {

/// The texts between backquotes in one cell of a table.
std::vector<std::string> quoted(const std::string& cell) {
  std::vector<std::string> out;
  std::istringstream in(cell);
  std::string text;
  for (bool inside = false; std::getline(in, text, '`'); inside = !inside) {
    if (inside) out.push_back(text);
  }
  return out;
}

/// One row of the page's first table: a pattern, and the changes that arrive under it.
struct Row {
  std::string pattern;
  std::multiset<std::string> changes;
};

/// The rows of the table that begins with `| pattern | receives |`.
std::vector<Row> rows_of_page() {
  std::ifstream page(DRIFTD_SOURCE_DIR "/docs/subscribe.md");
  std::vector<Row> out;
  std::string line;
  while (std::getline(page, line) && line != "| pattern | receives |") {
  }
  std::getline(page, line);  // |---|---|
  while (std::getline(page, line) && line.starts_with("|")) {
    const auto border = line.find('|', 1);
    const auto changes = quoted(line.substr(border));
    out.push_back({quoted(line.substr(0, border)).at(0), {changes.begin(), changes.end()}});
  }
  return out;
}

/// The change in a subject: what follows the backend's name, or the name of a view.
std::string change_of(const std::string& subject) {
  const bool view = subject.starts_with("backend.type.") || subject.starts_with("backend.source.");
  auto at = std::string::size_type{0};
  for (int tokens = view ? 3 : 2; tokens > 0; --tokens) at = subject.find('.', at) + 1;
  return subject.substr(at);
}

std::multiset<std::string> changes_of(const NatsSubscriber& subscriber) {
  std::multiset<std::string> out;
  for (const auto& message : subscriber.received()) out.insert(change_of(message.subject));
  return out;
}

TEST(NatsSubscribers, EachPatternOfThePageReceivesWhatThePageSays) {
  const auto rows = rows_of_page();
  ASSERT_GE(rows.size(), 10U) << "the table of docs/subscribe.md";
  NatsServer server;
  std::vector<std::unique_ptr<NatsSubscriber>> subscribers;
  for (const auto& row : rows) subscribers.push_back(std::make_unique<NatsSubscriber>(server.url(), row.pattern));
  const NatsSubscriber everything(server.url(), "backend.>");
  RelayRunner runner(nats_sink(at(server)));
  add_all_changes(runner);
  const std::size_t count = all_changes().size();
  ASSERT_TRUE(delivered(runner, static_cast<std::int64_t>(count))) << runner.view().last_error;
  ASSERT_TRUE(eventually([&] { return everything.received().size() == 3 * count; }));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_TRUE(eventually([&] { return changes_of(*subscribers[i]) == rows[i].changes; }))
        << rows[i].pattern << " received " << testing::PrintToString(changes_of(*subscribers[i]));
  }
}

}  // namespace
}  // namespace driftd::test
