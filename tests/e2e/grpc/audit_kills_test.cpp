// SPDX-License-Identifier: Apache-2.0
// The audit row exists exactly when the change does: every kind of change, by the command line and by gRPC, of an agent
// that gets SIGKILL before and after each of its commits.
#include <fstream>

#include "e2e/enforced/at_sync.hpp"
#include "registry_world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class AuditKills : public GrpcRegistry {
 protected:
  /// One kind of change: what must stand before it, the change, and whether it is there.
  struct Kind {
    std::string verb;  ///< of its line
    std::function<void()> prepare;
    std::function<void()> change;
    std::function<bool()> there;
    std::string also = {};  ///< the verb of a second line; empty: there is none
  };

  AuditKills() {
    server_.grant_readme("redis-canary");
    agent_ = std::make_unique<Agent>(dir_,
                                     "defaults: { interval: 100ms, policy: { config: manual } }\nbackends:\n" +
                                         backend("manual") + "grpc:\n  socket: " + socket() + "\n  register: {}\n",
                                     at_sync_.environment({{"REDIS_PASSWORD", "redis-canary"}}));
  }
  std::string backend(const std::string& action) const {
    return "  - { name: cache, provider: redis, policy: { config: " + action + " }, settings: { address: \"" +
           server_.address() + "\", username: driftd, password: \"${env:REDIS_PASSWORD}\" } }\n";
  }
  void start() {
    agent_->start();
    ASSERT_TRUE(eventually([&] { return agent_->established({"cache"}); }, seconds(60))) << agent_->log();
  }
  /// Returns true if the chosen commit did not come, and chooses none any more. Else waits until the agent is gone.
  bool outlives() {
    if (at_sync_.forget()) return true;
    EXPECT_TRUE(eventually([&] { return !agent_->running(); }));
    return false;
  }
  /// A pending drift with a value that nobody has seen before.
  void drift() {
    const std::string value = std::to_string(++last_value_);
    ASSERT_EQ(server_.command({"CONFIG", "SET", "timeout", value}), "OK");
    const auto seen = [&] {
      for (const auto& row : agent_->rows({"drifts"})) {
        ref_ = row.value("ref", "");
        id_ = row.value("id", "");
        if (row.value("status", "") == "pending" && row.at("changes").dump().find(value) != std::string::npos)
          return true;
      }
      return false;
    };
    ASSERT_TRUE(eventually(seen, seconds(30))) << agent_->cli({"drifts", "--all"}).out << agent_->log();
  }
  json row() const {
    for (const auto& row : agent_->rows({"drifts", "--all", "--limit", "1000"})) {
      if (row.value("id", "") == id_) return row;
    }
    return json::object();
  }
  void cli(std::vector<std::string> words) { answer_ = agent_->cli(std::move(words)).code; }
  int silences() const { return static_cast<int>(agent_->rows({"silence", "list"}).size()); }
  void add_silence() {
    cli({"silence", "add", "--backend", "cache", "--for", "1h", "--reason", "planned"});
    for (const auto& one : agent_->rows({"silence", "list"})) silence_ = one.value("id", "");
  }
  /// Returns how many lines of this verb say that it was done.
  int lines(const std::string& verb) const {
    int out = 0;
    for (const auto& line : agent_->rows({"audit", "--limit", "1000"}))
      out += line.value("verb", "") == verb && line.value("outcome", "").empty() ? 1 : 0;
    return out;
  }
  bool is_whole() const {
    const json proof = agent_->ask({"audit", "verify"});
    return proof.is_object() && proof.value("whole", false);
  }
  std::string fresh_name() { return "extra-" + std::to_string(++last_value_); }
  bool is_registered(const std::string& name) const { return get(name).has_value(); }
  std::vector<Kind> decisions();
  std::vector<Kind> others();
  void expect_exact(const Kind& kind, const std::string& word);

  std::unique_ptr<Agent> agent_;
  AtSync at_sync_{dir_};
  int last_value_ = 100, answer_ = 0, before_ = 0, kills_ = 0;
  std::string ref_, id_, silence_, name_;
};

std::vector<AuditKills::Kind> AuditKills::decisions() {
  const auto has_status = [this](const std::string& status) {
    return [this, status] { return row().value("status", "") == status; };
  };
  const auto decide = [this](const std::string& verb) {
    return [this, verb] { cli({verb, ref_, "--reason", "checked"}); };
  };
  const auto claimed = [this] { return !row().value("claimed_by", "").empty(); };
  return {{"approved", [this] { drift(); }, decide("approve"), has_status("approved")},
          {"rejected", [this] { drift(); }, decide("reject"), has_status("rejected")},
          {"ignored", [this] { drift(); }, decide("ignore"), has_status("ignored")},
          {"undid reject",
           [this] {
             drift();
             cli({"reject", ref_});
           },
           [this] {
             cli({"undo", id_});
           },
           has_status("pending")},
          {"claimed", [this] { drift(); },
           [this] {
             cli({"claim", id_});
           },
           claimed},
          {"released",
           [this] {
             drift();
             cli({"claim", id_});
           },
           [this] {
             cli({"release", id_});
           },
           [claimed] { return !claimed(); }}};
}

std::vector<AuditKills::Kind> AuditKills::others() {
  const auto registered = [this] { return is_registered(name_); };
  const auto name = [this] { name_ = fresh_name(); };
  const auto named = [this] {
    name_ = fresh_name();
    EXPECT_TRUE(add(terraform(name_, topics_.path())).ok());
  };
  return {{"silences add", [this] { before_ = silences(); }, [this] { add_silence(); },
           [this] { return silences() == before_ + 1; }},
          {"silences expire",
           [this] {
             add_silence();
             before_ = silences();
           },
           [this] {
             cli({"silence", "expire", silence_});
           },
           [this] { return silences() == before_ - 1; }},
          {"register backend", name, [this] { answer_ = add(terraform(name_, topics_.path()), false).ok() ? 0 : 1; },
           registered, "set rules"},
          {"change backend", named,
           [this] { answer_ = update(terraform(name_, topics_.path(), "changed"), {}, false).ok() ? 0 : 1; },
           [this] {
             const auto found = get(name_);
             return found && found->metadata().contains("team");
           }},
          {"unregister backend", named, [this] { answer_ = remove(name_, {}, false).ok() ? 0 : 1; },
           [registered] { return !registered(); }}};
}

void AuditKills::expect_exact(const Kind& kind, const std::string& word) {
  for (int number = 1;; ++number) {
    SCOPED_TRACE(kind.verb + ", " + word + " " + std::to_string(number));
    ASSERT_LT(number, 12);
    ASSERT_NO_FATAL_FAILURE(kind.prepare());
    const int before = lines(kind.verb), also_before = lines(kind.also);
    at_sync_.choose(word, number);
    answer_ = -1;
    kind.change();
    const bool answered = answer_ == 0;
    const bool lives = outlives();
    if (!lives) {
      ++kills_;
      ASSERT_NO_FATAL_FAILURE(start());
    }
    const bool there = kind.there();
    EXPECT_EQ(lines(kind.verb) - before, there ? 1 : 0) << agent_->cli({"audit", "--limit", "12"}).out;
    EXPECT_EQ(lines(kind.also) - also_before, there && !kind.also.empty() ? 1 : 0);
    EXPECT_TRUE(there || !answered) << "it was answered and is gone";
    EXPECT_TRUE(is_whole());
    if (HasFailure()) return;
    if (lives) break;
  }
}

TEST_F(AuditKills, ADecisionIsThereExactlyWithItsLine) {
  ASSERT_NO_FATAL_FAILURE(start());
  for (const auto& kind : decisions()) {
    for (const std::string word : {"kill_before", "kill_after"}) ASSERT_NO_FATAL_FAILURE(expect_exact(kind, word));
  }
  EXPECT_GE(kills_, 12);
}

TEST_F(AuditKills, ASilenceAndARegistrationAreThereExactlyWithTheirLines) {
  ASSERT_NO_FATAL_FAILURE(start());
  for (const auto& kind : others()) {
    for (const std::string word : {"kill_before", "kill_after"}) ASSERT_NO_FATAL_FAILURE(expect_exact(kind, word));
  }
  EXPECT_GE(kills_, 12);
}

/// The policy is in the file: whatever a kill cuts off, the process that runs with it has named it once.
TEST_F(AuditKills, APolicyThatIsInForceIsNamedExactlyOnce) {
  ASSERT_NO_FATAL_FAILURE(start());
  const std::string text = read_file(agent_->config());
  int edits = 0;
  for (const std::string word : {"kill_before", "kill_after"}) {
    bool lives = false;
    for (int number = 1; !lives; ++number) {
      ASSERT_LT(number, 12);
      SCOPED_TRACE(word + " " + std::to_string(number));
      std::string next = text;
      const std::string was = backend("manual");
      next.replace(next.find(was), was.size(), backend(edits % 2 == 0 ? "ignore" : "manual"));
      std::ofstream(agent_->config()) << next;
      ++edits;
      at_sync_.choose(word, number);
      cli({"reload"});
      lives = outlives();
      if (!lives) {
        ++kills_;
        ASSERT_NO_FATAL_FAILURE(start());
      }
      ASSERT_EQ(lines("changed rules"), edits) << agent_->cli({"audit", "--limit", "12"}).out;
      EXPECT_TRUE(is_whole());
    }
  }
  EXPECT_GE(kills_, 4);
}

}  // namespace
}  // namespace driftd::test
