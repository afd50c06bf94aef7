// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "terraform/mapping.hpp"

namespace driftd::terraform {

/// Records what a reading of a state reports, in the order of the file.
struct Seen final : StateVisitor {
  Head head;
  Settings settings;
  std::vector<sdk::Record> records;

  bool instance(const Instance& instance) override {
    records.push_back(instance_record(reading(), instance, settings));
    return true;
  }
  bool output(const std::string& name, const nlohmann::json& output) override {
    records.push_back(output_record(reading(), name, output));
    return true;
  }
  Reading reading() const {
    Reading out;
    out.head = head;
    return out;
  }
  const sdk::Record& record(const std::string& kind) const {
    for (const auto& r : records) {
      if (r.kind == kind) return r;
    }
    throw std::runtime_error("no " + kind);
  }
  std::vector<std::string> ids(const std::string& kind) const {
    std::vector<std::string> out;
    for (const auto& r : records) {
      if (r.kind == kind) out.push_back(r.id);
    }
    return out;
  }
};

inline Spool spool_of(const std::string& text) {
  Spool out;
  out.write(text);
  out.finish();
  return out;
}

inline Seen read(const std::string& text, const Settings& settings = {}) {
  const Spool spool = spool_of(text);
  Seen out;
  out.settings = settings;
  out.head = read_head(spool);
  out.records.push_back(state_record(out.reading()));
  read_contents(spool, out.head, out);
  return out;
}

/// A v4 state with one resource, `module.bus.kafka_topic.orders`, of these instances.
inline std::string state_with(const std::string& instances, const std::string& outputs = "{}",
                              const std::string& rest = {}) {
  return R"({"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"abc","outputs":)" + outputs +
         R"(,"resources":[{"module":"module.bus","mode":"managed","type":"kafka_topic","name":"orders","provider":"p",)" +
         R"("instances":[)" + instances + "]}]" + rest + "}";
}

/// A v4 state with one resource, `<type>.it`.
inline std::string of_type(const std::string& type, const std::string& attributes) {
  return R"({"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"abc","outputs":{},"resources":[{"mode":"managed",)"
         R"("type":")" +
         type + R"(","name":"it","provider":"p","instances":[{"attributes":)" + attributes + "}]}]}";
}

}  // namespace driftd::terraform
