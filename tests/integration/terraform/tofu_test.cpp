// SPDX-License-Identifier: Apache-2.0
// States that a real OpenTofu writes, without a network: for_each, secrets, workspaces, moves, destroys, and its own
// encryption.
#include <gmock/gmock.h>
#include <filesystem>
#include <fstream>

#include "settled.hpp"
#include "support/provider_probe.hpp"
#include "support/tofu.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::vector<std::string> ids(const Collected& seen, const std::string& kind) {
  std::vector<std::string> out;
  for (const auto& record : seen.records) {
    if (record.kind == kind) out.push_back(record.id);
  }
  return out;
}

/// Three instances, a sensitive value, outputs, and a check that always fails.
constexpr const char* kThree = R"(
resource "terraform_data" "each" {
  for_each = toset(["x", "y z"])
  input    = each.key
}
variable "pw" {
  sensitive = true
  default   = "canary-of-the-variable"
}
resource "terraform_data" "secret" {
  input = var.pw
}
output "pw" {
  value     = var.pw
  sensitive = true
}
output "plain" { value = 7 }
check "never" {
  assert {
    condition     = terraform_data.secret.id == "x"
    error_message = "no"
  }
}
)";

ProviderProbe probe_of(const std::string& path, json more = {}) {
  json settings = {{"path", path}};
  if (more.is_object()) settings.update(more);
  return ProviderProbe("providers/terraform.so", settings);
}

TEST(TerraformTofu, ForEachSecretsOutputsAndChecksAreRead) {
  Tofu tofu;
  tofu.configure(kThree);
  tofu.apply();
  auto probe = probe_of(tofu.state_file());
  const auto seen = probe.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  EXPECT_THAT(ids(seen, "instance"), UnorderedElementsAre(R"(terraform_data.each["x"])",
                                                          R"(terraform_data.each["y z"])", "terraform_data.secret"));
  EXPECT_THAT(ids(seen, "output"), UnorderedElementsAre("pw", "plain"));
  EXPECT_THAT(seen.find("output", "pw")->sensitive, ElementsAre("value"));
  // OpenTofu decides which attributes it marks as sensitive; the value must not be in any other
  for (const auto& record : seen.records) {
    json body = json::parse(record.body);
    for (const auto& path : record.sensitive) body.erase(path.substr(0, path.find_first_of(".[")));
    EXPECT_EQ(body.dump().find("canary"), std::string::npos) << record.id << " " << record.body;
  }
  EXPECT_EQ(json::parse(seen.find("state", "state")->status)["checks"], (json{{"fail", 1}}));
}

TEST(TerraformTofu, ChangeMoveAndDestroyAreSeenAsWhatTheyAre) {
  Tofu tofu;
  tofu.configure("resource \"terraform_data\" \"a\" { input = 1 }\n");
  tofu.apply();
  auto probe = probe_of(tofu.state_file());
  const auto first = settled(probe);
  EXPECT_TRUE(probe.refresh(first.cursor).unchanged);

  tofu.configure("resource \"terraform_data\" \"a\" { input = 2 }\n");
  tofu.apply();
  const auto changed = probe.refresh(first.cursor);
  EXPECT_EQ(changed.body("instance", "terraform_data.a")["input"], json::parse(R"({"type":"number","value":2})"));
  EXPECT_GT(std::stoi(changed.records[0].version), std::stoi(first.records[0].version));
  EXPECT_EQ(changed.records[0].metadata.count("history"), 0u);

  tofu.configure(
      "resource \"terraform_data\" \"b\" { input = 2 }\nmoved {\n  from = terraform_data.a\n  to = "
      "terraform_data.b\n}\n");
  tofu.apply();
  EXPECT_THAT(ids(probe.refresh(changed.cursor), "instance"), ElementsAre("terraform_data.b"));
  EXPECT_NE(probe.read({{"instance", "terraform_data.a"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);

  tofu.run({"destroy", "-auto-approve"});
  const auto gone = probe.refresh();
  EXPECT_EQ(gone.complete,
            (std::map<std::string, std::uint64_t>{{"state", 1}, {"instance", 0}, {"output", 0}, {"registration", 0}}));
}

TEST(TerraformTofu, WorkspacesHaveTheirOwnStateAndLineage) {
  Tofu tofu;
  tofu.configure("resource \"terraform_data\" \"a\" { input = terraform.workspace }\n");
  tofu.apply();
  tofu.run({"workspace", "new", "prod"});
  tofu.apply();
  auto plain = probe_of(tofu.state_file()), prod = probe_of(tofu.state_file(), {{"workspace", "prod"}});
  EXPECT_EQ(plain.refresh().body("instance", "terraform_data.a")["input"]["value"], "default");
  EXPECT_EQ(prod.refresh().body("instance", "terraform_data.a")["input"]["value"], "prod");
  EXPECT_NE(plain.health().health.system_identity, prod.health().health.system_identity);
}

TEST(TerraformTofu, EditWithoutANewSerialIsTamperingAndAnOlderStateIsARollback) {
  Tofu tofu;
  tofu.configure("resource \"terraform_data\" \"a\" { input = 1 }\n");
  tofu.apply();
  const std::string original = read_file(tofu.state_file());
  std::string edited = original;
  edited.replace(edited.find("\"value\":1"), 9, "\"value\":9");
  auto probe = probe_of(tofu.state_file());
  const auto first = probe.refresh();
  std::ofstream(tofu.state_file()) << edited;
  const auto tampered = probe.refresh(first.cursor);
  EXPECT_EQ(tampered.find("instance", "terraform_data.a")->metadata.at("history"), "tampered");
  EXPECT_EQ(probe.refresh().records[0].metadata.at("history"), "tampered") << "the record says so until the next apply";
  tofu.configure("resource \"terraform_data\" \"a\" { input = 3 }\n");
  tofu.apply();
  const auto applied = probe.refresh(tampered.cursor);
  EXPECT_EQ(applied.records[0].metadata.count("history"), 0u);
  std::ofstream(tofu.state_file()) << original;
  EXPECT_EQ(probe.refresh(applied.cursor).records[0].metadata.at("history"), "rolled back");
  // a worker that was started in between knows it from the cursor
  auto fresh = probe_of(tofu.state_file());
  EXPECT_EQ(fresh.refresh(applied.cursor).records[0].metadata.at("history"), "rolled back");
}

TEST(TerraformTofu, OfAStateThatItEncryptedOnlyLineageAndSerialAreKnownAndNothingIsGone) {
  Tofu tofu;
  tofu.configure("resource \"terraform_data\" \"a\" { input = 1 }\n", R"(encryption {
    key_provider "pbkdf2" "k" {
      passphrase = "a passphrase of sixteen"
    }
    method "aes_gcm" "m" {
      keys = key_provider.pbkdf2.k
    }
    state {
      method = method.aes_gcm.m
    }
  })");
  tofu.apply();
  ASSERT_THAT(read_file(tofu.state_file()), HasSubstr("encrypted_data"));
  auto probe = probe_of(tofu.state_file());
  const auto seen = probe.refresh();
  EXPECT_EQ(seen.status, DRIFTD_OK);
  EXPECT_EQ(seen.complete, (std::map<std::string, std::uint64_t>{{"state", 1}}));
  ASSERT_EQ(seen.records.size(), 1u);
  EXPECT_EQ(seen.records[0].version, "1");
  EXPECT_EQ(seen.diagnostics.size(), 3u) << "one for each of instance, output and registration";
  EXPECT_THAT(seen.diagnostics[0].text, HasSubstr("encrypted by OpenTofu"));
  const auto again = probe.refresh(seen.cursor);
  EXPECT_FALSE(again.unchanged) << "the diagnostics come with every cycle";
  EXPECT_EQ(again.diagnostics.size(), 3u);
  const auto asked = probe.read({{"instance", "terraform_data.a"}});
  EXPECT_EQ(asked.status, DRIFTD_UNSUPPORTED);
  EXPECT_EQ(asked.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  EXPECT_EQ(probe.health().health.system_identity, json::parse(seen.records[0].body)["lineage"]);
}

}  // namespace
}  // namespace driftd::test
