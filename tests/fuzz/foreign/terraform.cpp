// SPDX-License-Identifier: Apache-2.0
// State files of every format, parsed as the terraform provider does in its worker.
#include <nlohmann/json.hpp>

#include "core/value/parse_limits.hpp"
#include "fuzz/foreign/foreign.hpp"
#include "terraform/mapping.hpp"
#include "terraform/secrets.hpp"
#include "terraform/settings.hpp"
#include "terraform/spool.hpp"
#include "terraform/state.hpp"

namespace driftd::fuzz {
namespace {

using namespace driftd::terraform;

/// Texts that are compared with what a tree of them says; a tree takes many times as much memory.
constexpr std::size_t kCompared = 64u << 10;

/// What is read of the text of an instance is what a tree of it holds.
void compare(const Reading& reading, const Instance& instance, const Settings& settings, const std::string& body) {
  if (!instance.is_plain() || instance.attributes.size() > kCompared) return;
  InstanceText text;
  text.attributes = instance.attributes;
  text.sensitive_attributes = instance.sensitive;
  text.traits = instance.traits;
  text.traits.escaped = true;  // never passed on as it is
  const Instance slow(instance.resource, text);
  require(nlohmann::json::parse(body) == nlohmann::json::parse(instance_record(reading, slow, settings).body),
          "the text of the attributes is what their tree holds");
  require(secret_paths(instance, settings) == secret_paths(slow, settings), "as many secrets in a text as in a tree");
}

/// Takes no interest in anything.
class Passing final : public DocumentVisitor {
 public:
  bool top(const std::string&, std::string_view) override { return true; }
  bool instance(const Resource&, const InstanceText&) override { return true; }
  bool output(const std::string&, std::string_view) override { return true; }
  bool check(std::string_view) override { return true; }
  bool encrypted() override { return true; }
};

/// JSON is what nlohmann's parser takes for JSON.
void compare_syntax(std::string_view text) {
  if (text.find('\0') != text.npos) return;  // which that parser takes for the end of the text
  Passing passing;
  bool valid = true, walked = true;
  try {
    walk(text, passing);
  } catch (const sdk::Failure& failure) {
    walked = false;
    valid = std::string_view(failure.what()).find("not valid JSON") == std::string_view::npos;
  }
  if (walked) require(nlohmann::json::accept(text), "what is accepted is JSON");
  if (!valid) require(!nlohmann::json::accept(text), "what is called invalid is not JSON");
}

class Take final : public StateVisitor {
 public:
  explicit Take(const Reading& reading) : reading_(reading) {}
  bool instance(const Instance& instance) override {
    const std::string body = instance_record(reading_, instance, settings_).body;
    (void)core::parse(body, core::kBodyLimits);
    compare(reading_, instance, settings_, body);
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
  compare_syntax(text);
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
