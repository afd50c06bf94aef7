// SPDX-License-Identifier: Apache-2.0
// Random calls, reloads and SIGKILLs against a model of the test's own. Whatever a kill cuts off is asked for again, as
// a caller without an answer does; the registry and every event about a backend must then be the model's.
#include <fstream>
#include <random>

#include "registry_world.hpp"

namespace driftd::test {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

class RegistryKills : public GrpcRegistry {
 protected:
  struct Entry {
    bool file = false;  ///< of the configuration
    std::string team;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using Model = std::map<std::string, Entry>;

  Model registry() const {
    Model out;
    for (const auto& backend : list()) {
      if (backend.name() == "platform") continue;
      const auto team = backend.metadata().find("team");
      out[backend.name()] = {backend.source() == "file", team == backend.metadata().end() ? "" : team->second};
    }
    return out;
  }
  /// Writes the configuration with the model's backends that are of the file.
  void write(const Agent& agent, const Model& model) const {
    std::string text = base_;
    std::string more;
    for (const auto& [name, entry] : model) {
      if (!entry.file) continue;
      more += "  - { name: " + name + ", provider: terraform, settings: { path: " + topics_.path() +
              " }, labels: { team: " + entry.team + " } }\n";
    }
    text.insert(text.find("grpc:\n"), more);
    std::ofstream(agent.config()) << text;
  }
  std::string base_;
};

TEST_F(RegistryKills, TheRegistryIsTheModelsAfterEveryKill) {
  const unsigned seed = std::getenv("DRIFTD_SEED") != nullptr ? std::stoul(std::getenv("DRIFTD_SEED")) : 20251126;
  const int steps = std::getenv("DRIFTD_STEPS") != nullptr ? std::stoi(std::getenv("DRIFTD_STEPS")) : 40;
  SCOPED_TRACE("DRIFTD_SEED=" + std::to_string(seed));
  std::minstd_rand random(seed);
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  Agent agent = registrar();
  start(agent);
  base_ = read_file(agent.config());
  Model model;
  std::map<std::string, std::vector<std::string>> ledger;
  const auto note = [&](const std::string& name, const char* what) {
    ledger[name].push_back(what + std::string(" manual"));
  };
  int kills = 0, cut = 0;
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const std::string name = "b" + std::to_string(pick(4)), team(1, static_cast<char>('a' + pick(3)));
    const int kind = pick(5);
    const auto known = model.find(name);
    const bool there = known != model.end(), file = there && known->second.file;
    std::function<bool()> call;  // true: answered
    if (kind == 4 || file) {     // a reload that adds, changes, takes over or removes
      if (file && pick(2) == 0) {
        model.erase(name);
        note(name, "deleted");
      } else {
        if (!there) note(name, "created");
        if (there && known->second.team != team) note(name, "updated");
        model[name] = {true, team};
      }
      write(agent, model);
      call = [&] { return run({Agent::binary(), "reload", "--config", agent.config()}).code == 0; };
    } else if (kind == 3) {
      if (there) note(name, "deleted");
      model.erase(name);
      call = [&, name] { return remove(name, {}, false).ok(); };
    } else if (there) {
      if (known->second.team != team) note(name, "updated");
      model[name] = {false, team};
      call = [&, name, team] { return update(terraform(name, topics_.path(), team), {}, false).ok(); };
    } else {
      note(name, "created");
      model[name] = {false, team};
      call = [&, name, team] { return add(terraform(name, topics_.path(), team), false).ok(); };
    }
    if (pick(3) == 0) {
      std::atomic<bool> answered = false;
      std::thread caller([&] { answered = call(); });
      const auto until = std::chrono::steady_clock::now() + microseconds(pick(12'000));
      while (std::chrono::steady_clock::now() < until && !answered) std::this_thread::yield();
      agent.kill();
      caller.join();
      agent.start();
      ++kills;
      cut += answered ? 0 : 1;
      ASSERT_TRUE(eventually([&] { return agent.backend("platform").has_value(); }, seconds(40))) << agent.log();
      if (answered) {
        EXPECT_EQ(registry(), model) << "what was answered is durable";
      }
    }
    ASSERT_TRUE(eventually(call, seconds(40))) << agent.log();
    ASSERT_EQ(registry(), model);
  }
  v1::SubscribeRequest everything;
  everything.set_start(v1::SubscribeRequest::START_OLDEST);
  const Reader reader(channel(), everything);
  for (const auto& [name, events] : ledger) {
    EXPECT_TRUE(eventually([&] { return registrations(reader.events(), name).size() >= events.size(); })) << name;
    EXPECT_EQ(registrations(reader.events(), name), events) << name;
  }
  RecordProperty("kills", kills);
  EXPECT_GT(kills, 0);
  std::printf("%d steps, %d kills, %d before the answer\n", steps, kills, cut);
  agent.kill();
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.backend("platform").has_value(); }, seconds(40)));
  EXPECT_EQ(registry(), model) << "and after one more";
}

}  // namespace
}  // namespace driftd::test
