// SPDX-License-Identifier: Apache-2.0
// Globs and names that are made to be slow to match: from a reader of the API, in the configuration, and in the watched
// systems.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "attacked.hpp"
#include "support/patience.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Repeats `part` as often as it fits into `size` bytes.
std::string repeated(const std::string& part, std::size_t size) {
  std::string out;
  while (out.size() + part.size() <= size) out += part;
  return out;
}

/// Returns globs like `*a*a*a…b`. Each almost matches a name that consists of the letter a, in very many ways.
std::vector<std::string> bombs(std::size_t size) {
  return {repeated("*a", size) + "b",         repeated("*a", size) + "*",  repeated("*", size) + "b",
          repeated("*aa", size) + "*b",       repeated("a*", size) + "ab", repeated("*", size),
          "*" + std::string(size, 'a') + "*b"};
}

class HostileGlobs : public Attacked {
 protected:
  HostileGlobs() { victim_.grant_readme("victim-canary"); }

  /// Starts the agent on two victims: Redis users whose names and key patterns consist of the letter a, and a Terraform
  /// instance whose attributes have such names. `more` is YAML for each of the two backends.
  void watch(const std::string& more) {
    for (int i = 0; i < 300; ++i) {
      ASSERT_EQ(victim_.command(
                    {"ACL", "SETUSER", std::string(3'700, 'a') + std::to_string(i), "on", "~" + std::string(200, 'a')}),
                "OK");
    }
    write(3);
    start_agent("  - name: ledger\n    provider: redis\n    settings: { address: \"" + victim_.address() +
                    "\", username: driftd, password: \"${env:VICTIM}\" }\n" + more +
                    "  - name: platform\n    provider: terraform\n    settings: { path: " +
                    dir_.file("terraform.tfstate") + " }\n" + more,
                {"ledger", "platform"}, {{"VICTIM", "victim-canary"}});
  }
  void write(int partitions) const {
    json attributes = {{"partitions", partitions}};
    for (int i = 0; i < 100; ++i) attributes[repeated("a.", 1'500) + std::to_string(i)] = partitions;
    json deep = partitions;
    for (int i = 0; i < 60; ++i) deep = json{{"a", deep}};
    attributes["deep"] = deep;
    const json state{{"version", 4},
                     {"terraform_version", "1.9.0"},
                     {"serial", 7},
                     {"lineage", "abc"},
                     {"outputs", json::object()},
                     {"resources",
                      {{{"mode", "managed"},
                        {"type", "thing"},
                        {"name", "good"},
                        {"provider", "p"},
                        {"instances", {{{"attributes", attributes}}}}}}}};
    std::ofstream(dir_.file("terraform.tfstate.new")) << state.dump();
    std::filesystem::rename(dir_.file("terraform.tfstate.new"), dir_.file("terraform.tfstate"));
  }
  /// Sends a GET with `name=pattern` as somebody who may read but not decide. Returns the HTTP status.
  std::string ask(const std::string& question, const std::string& name, const std::string& pattern) const {
    std::vector<std::string> command{"curl",
                                     "-sS",
                                     "-o",
                                     "/dev/null",
                                     "-w",
                                     "%{http_code}",
                                     "-G",
                                     "--max-time",
                                     "20",
                                     "--unix-socket",
                                     agent_->socket(),
                                     "http://localhost" + question,
                                     "--data-urlencode",
                                     name + "=" + pattern};
    if (::geteuid() == 0)
      command.insert(command.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
    return run(command).out;
  }

  RedisServer victim_;
};

TEST_F(HostileGlobs, OfAReaderAreAnsweredWithinABoundWhileTheOthersAreWatched) {
  if (::geteuid() == 0)
    admin_ = "  read_group: nogroup\n";
  else
    std::cerr << "not root: the reader is the agent's own user, who may also decide\n";
  ASSERT_NO_FATAL_FAILURE(watch({}));
  std::filesystem::permissions(dir_.path(), std::filesystem::perms::others_exec, std::filesystem::perm_options::add);
  const std::vector<std::pair<std::string, std::string>> questions{{"/v1/drifts?all=true", "id"},
                                                                   {"/v1/drifts?all=true", "backend"},
                                                                   {"/v1/drifts?all=true", "kind"},
                                                                   {"/v1/resources", "kind"},
                                                                   {"/v1/resources", "backend"}};
  EXPECT_EQ(ask("/v1/resources", "backend", "ledger*"), "200") << "the reader may read";
  if (::geteuid() == 0) {
    const Output refused =
        run({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-s", "-o", "/dev/null", "-w",
             "%{http_code}", "-X", "POST", "--unix-socket", agent_->socket(), "http://localhost/v1/reload"});
    EXPECT_EQ(refused.out, "403") << "and may not decide";
  }
  for (const auto& [question, name] : questions) {
    for (const auto& bomb : bombs(3'500)) {
      const auto start = Clock::now();
      EXPECT_EQ(ask(question, name, bomb), "200") << question << " " << name;
      EXPECT_LT(Clock::now() - start, std::chrono::seconds(5) * kPatience)
          << question << " " << name << "=" << bomb.substr(0, 16);
    }
  }
  const auto every_bomb = bombs(3'500);
  std::vector<std::thread> readers;
  for (int i = 0; i < 12; ++i) {
    readers.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n)
        ask("/v1/drifts?all=true&limit=10000", "id", every_bomb[static_cast<std::size_t>(i + n) % every_bomb.size()]);
    });
  }
  const auto watched = neighbour_is_watched();
  for (auto& reader : readers) reader.join();
  EXPECT_TRUE(watched);
  EXPECT_EQ(ask("/v1/drifts", "id", std::string(60'000, '*')), "400") << "the line is longer than a request may be";
  write(9);
  EXPECT_TRUE(drift_appears("platform", "partitions"));
  expect_unharmed();
}

/// The rules are tried on every attribute and id, and those were chosen by an attacker.
TEST_F(HostileGlobs, InRulesCostNoCycle) {
  std::string rules = "    ignore:\n";
  for (const auto& bomb : bombs(400)) {
    if (bomb.find("**") == std::string::npos) rules += "      - \"" + bomb + "\"\n";
  }
  for (const char* doubled : {"**.a.**.a.**.a.**.b", "**.a*a*a*a*a*b.**", "**.*a*.**.*a*.**.*a*b"})
    rules += "      - \"" + std::string(doubled) + "\"\n";
  rules += "      - \"" + repeated("*.", 16'000) + "b\"\n      - \"" + repeated("a.", 16'000) + "b\"\n    policy:\n";
  for (const auto& bomb : bombs(3'500)) rules += "      - { match: { id: \"" + bomb + "\" }, action: ignore }\n";
  rules += "      - { match: { id: \"*\" }, action: manual }\n";
  ASSERT_NO_FATAL_FAILURE(watch(rules));
  write(9);
  EXPECT_TRUE(drift_appears("platform", "partitions"));
  ASSERT_EQ(victim_.command({"ACL", "SETUSER", std::string(3'700, 'a') + "7", "+get"}), "OK");
  ASSERT_EQ(victim_.command({"ACL", "SETUSER", "honest", "on"}), "OK");
  EXPECT_TRUE(drift_appears("ledger", "acl_user/honest", "honest"));
  expect_nothing_deleted("ledger");
  expect_unharmed();
}

}  // namespace
}  // namespace driftd::test
