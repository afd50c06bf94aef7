// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "on_the_store.hpp"

namespace driftd::test {

inline constexpr const char* kRegistrationSchema = R"({"schema":"driftd-schema/1","kind":"registration","attributes":{
  "config.password":{"class":"credential"},"discovery.port":{"class":"endpoint"}}})";

inline std::string registration_body(const std::string& password, int port) {
  return R"({"config":{"password":")" + password + R"("},"discovery":{"port":)" + std::to_string(port) + "}}";
}

/// A cluster `source`, whose owner writes in `prod` and a tenant in `tenant`, and the backend `b` of the config.
class ClaimsOfSources : public EngineOnTheStore {
 protected:
  ClaimsOfSources() { prepare(); }
  void prepare(std::vector<core::Registrar> spoken_by = {}) {
    source().kinds = {"registration", "object"};
    source().extensions = {"driftd.discover"};
    source().schemas["registration"] = kRegistrationSchema;
    source().metadata = {{"defined_in", "prod"}};
    source().discovered.complete = true;
    line_->interval = std::chrono::milliseconds(1);
    line_->spoken_by = std::move(spoken_by);
  }
  ScriptedWorld& source() { return *line_->source; }
  void own(const std::string& password, int port, const std::string& backend = "b") {
    source().declared_kinds.insert({backend, "registration"});
    source().declared[{backend, {"registration", backend}}] = registration_body(password, port);
  }
  void tenant(const std::string& password, int port, const std::string& backend = "b") {
    source().declared_kinds.insert({backend, "registration"});
    source().tenants = {{backend, "tenant", registration_body(password, port)}};
  }
  void tamper(const std::string& sql) const { test::tamper(dir_.file("data/store.db"), sql); }
  void silence() {
    source().declared.clear();
    source().declared_kinds.clear();
    source().tenants.clear();
  }
  void look() {
    report_ = line_->refresh(true, "source");
    (void)line_->refresh(true, "b");
    report_ = line_->refresh(true, "source");
    (void)line_->refresh(true, "b");
  }
  void restart(std::vector<core::Registrar> spoken_by = {}) {
    const ScriptedWorld b = *line_->world, s = source();
    line_.reset();
    line_ = std::make_unique<EngineLine>(dir_);
    *line_->world = b;
    *line_->source = s;
    prepare(std::move(spoken_by));
    line_->start(false);
  }
  std::vector<std::string> event_types(const std::string& backend = "b") {
    std::vector<std::string> out;
    for (const auto& event : line_->events()) {
      if (event.backend == backend && event.what != "created") out.push_back(event.what);
    }
    return out;
  }
  std::vector<core::Drift> claims() {
    auto out = line_->drifts();
    std::erase_if(out, [](const core::Drift& drift) { return drift.resource.kind != "claim"; });
    return out;
  }
  /// Waits for that many open claims, because the question is committed beside the cycle.
  bool asked(std::size_t many = 1) {
    return eventually([&] { return claims().size() == many; }, std::chrono::seconds(10));
  }
  void decide(core::Decision::Verb verb) { ASSERT_TRUE(line_->decide(claims().at(0).id, decision(verb))); }
};

}  // namespace driftd::test
