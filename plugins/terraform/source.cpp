// SPDX-License-Identifier: Apache-2.0
#include "terraform/source.hpp"

#include <algorithm>
#include <utility>

#include "common/settings_reader.hpp"
#include "common/wait_until.hpp"

namespace driftd::terraform {
namespace {

using Open = std::unique_ptr<Source> (*)(const Settings&);
constexpr std::pair<const char*, Open> kTypes[] = {
    {"local", &open_local}, {"http", &open_http},     {"s3", &open_s3},
    {"pg", &open_pg},       {"consul", &open_consul}, {"kubernetes", &open_kubernetes},
    {"cloud", &open_cloud}, {"remote", &open_cloud},
};

}  // namespace

std::unique_ptr<Source> open_source(const Settings& settings) {
  const std::string type = settings.backend.at("type").get<std::string>();
  std::string known;
  for (const auto& [name, open] : kTypes) {
    if (type == name) return open(settings);
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  common::refuse_setting("settings.backend.type", "one of " + known, "'" + type + "'", "correct the type");
}

void Source::watch(sdk::Call& call, const std::function<void()>&) {
  common::wait_until(call, std::chrono::steady_clock::time_point::max());
}

void no_state(const std::string& what) {
  throw sdk::Failure(DRIFTD_UNAVAILABLE, what + ": there is no state; nothing is concluded from a missing state");
}

}  // namespace driftd::terraform
