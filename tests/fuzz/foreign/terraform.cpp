// SPDX-License-Identifier: Apache-2.0
// State files of every format, parsed as the terraform provider does in its worker.
#include <nlohmann/json.hpp>

#include "core/value/parse_limits.hpp"
#include "fuzz/foreign/foreign.hpp"
#include "terraform/mapping.hpp"
#include "terraform/settings.hpp"
#include "terraform/spool.hpp"
#include "terraform/state.hpp"

namespace driftd::fuzz {
namespace {

using namespace driftd::terraform;

class Take final : public StateVisitor {
 public:
  explicit Take(const Reading& reading) : reading_(reading) {}
  bool instance(const Instance& instance) override {
    (void)core::parse(instance_record(reading_, instance, settings_).body, core::kBodyLimits);
    return ++seen_ < 1'000;
  }
  bool output(const std::string& name, const nlohmann::json& output) override {
    (void)core::parse(output_record(reading_, name, output).body, core::kBodyLimits);
    return ++seen_ < 1'000;
  }

 private:
  const Reading& reading_;
  Settings settings_;
  int seen_ = 0;
};

}  // namespace

void tfstate(std::string_view text) {
  try {
    Spool spool;
    spool.write(text);
    spool.finish();
    Reading reading;
    reading.head = read_head(spool);
    (void)state_record(reading);
    Take take(reading);
    read_contents(spool, reading.head, take);
  } catch (const std::exception&) {
  }
}

}  // namespace driftd::fuzz
