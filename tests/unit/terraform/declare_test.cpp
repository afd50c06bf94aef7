// SPDX-License-Identifier: Apache-2.0
// What the resources of other people's providers declare, and which backends they are labelled to be.
#include "terraform/declare.hpp"

#include <gmock/gmock.h>
#include <openssl/evp.h>
#include <fstream>
#include <iterator>

#include "states.hpp"
#include "terraform/declare_custom.hpp"
#include "terraform/discover.hpp"
#include "terraform/document.hpp"
#include "terraform/sigv4.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

/// Returns everything that the state of testdata declares under one rule, and the backends that it holds.
class Declarations : public testing::Test, protected StateVisitor {
 protected:
  void read(const DeclarationRule& rule, Settings settings = {}) {
    std::ifstream file(DRIFTD_SOURCE_DIR "/tests/unit/terraform/testdata/declared.tfstate");
    const Spool spool = spool_of({std::istreambuf_iterator<char>(file), {}});
    rule_ = rule;
    settings_ = std::move(settings);
    reading_.head = read_head(spool);
    read_contents(spool, reading_.head, *this);
  }
  bool instance(const Instance& instance) override {
    std::string why;
    if (matches(rule_, instance)) {
      matched_.push_back(instance.address);
      if (const auto declared = declare(instance, rule_, why)) found_[declared->kind + " " + declared->id] = *declared;
    }
    if (auto found = definition_of(reading_, instance, settings_, why)) backends_.push_back(found->backend);
    if (!why.empty()) why_.push_back(instance.address + ": " + why);
    return true;
  }
  bool output(const std::string&, const json&) override { return true; }
  json body(const std::string& what) { return found_.contains(what) ? found_[what].body : json(); }
  const sdk::Backend& backend(const std::string& name) {
    for (const auto& each : backends_) {
      if (each.name == name) return each;
    }
    throw std::runtime_error("no backend " + name);
  }

  DeclarationRule rule_;
  Settings settings_;
  Reading reading_;
  std::map<std::string, Declaration> found_;
  std::vector<std::string> matched_, why_;
  std::vector<sdk::Backend> backends_;
};

TEST_F(Declarations, PostgresRolesDeclareTheirAttributesButNoPassword) {
  read({"postgresql_role", "", "db", ""});
  EXPECT_EQ(body("role app"), (json{{"bypass_rls", false},
                                    {"connection_limit", 20},
                                    {"create_db", false},
                                    {"create_role", true},
                                    {"inherit", true},
                                    {"login", true},
                                    {"replication", false},
                                    {"superuser", false},
                                    {"settings", {{"statement_timeout", "5000"}}}}));
  EXPECT_EQ(body("role guest")["valid_until"], "2030-01-02T03:04:05.000000Z");
  EXPECT_THAT(why_, ElementsAre(HasSubstr("untyped")));
}

TEST_F(Declarations, APostgresDatabaseDeclaresWhatIsNotLeftToTheServer) {
  read({"postgresql_database", "", "db", ""});
  EXPECT_EQ(body("database app"), (json{{"allow_connections", true},
                                        {"collation", "C"},
                                        {"connection_limit", -1},
                                        {"ctype", "C"},
                                        {"encoding", "UTF8"},
                                        {"is_template", false},
                                        {"owner", "app"}}));
}

TEST_F(Declarations, AnExtensionIsDeclaredOnlyForTheDatabaseThatTheBackendSees) {
  read({"postgresql_extension", "", "db", "app"});
  EXPECT_EQ(body("extension app.pg_trgm"), (json{{"schema", "public"}, {"version", "1.6"}}));
  found_.clear();
  read({"postgresql_extension", "", "db", "*"});
  EXPECT_EQ(found_.size(), 1u);
  found_.clear();
  read({"postgresql_extension", "", "db", "other"});
  EXPECT_THAT(found_, IsEmpty());
  why_.clear();
  read({"postgresql_extension", "", "db", ""});
  EXPECT_THAT(why_, Contains(HasSubstr("declares[].database")));
}

TEST_F(Declarations, ATypeThatIsUnknownIsNamed) {
  read({"postgresql_*", "", "db", ""});
  EXPECT_THAT(why_, Contains(testing::AllOf(HasSubstr("postgresql_grant.read"),
                                            HasSubstr("postgresql_grant is in backend db"))));
}

TEST_F(Declarations, TopicsOfBothProvidersDeclareConfigInTheWordsOfKafka) {
  read({"*kafka_topic", "", "bus", ""});
  EXPECT_EQ(body("topic orders"),
            (json{{"partitions", 6},
                  {"replication_factor", 3},
                  {"config", {{"cleanup.policy", {"compact", "delete"}}, {"retention.ms", "86400000"}}}}));
  EXPECT_EQ(body("topic bills"), (json{{"partitions", 4}, {"config", {{"retention.ms", "1000"}}}}));
}

TEST_F(Declarations, AclsAreTheWholeBindingInKafkasWords) {
  read({"*kafka_acl", "", "bus", ""});
  EXPECT_EQ(body("acl User:app|*|Read|Allow|Topic|orders|Literal")["operation"], "Read");
  EXPECT_EQ(body("acl User:sa-1|*|DescribeConfigs|Allow|Topic|a%7Cb|Prefixed")["resource_name"], "a|b");
}

TEST_F(Declarations, SecretsAreSensitiveUnderThePathsOfTheLiveProvider) {
  read({"kubernetes_*", "", "prod", ""});
  const Declaration& secret = found_["secret prod/db"];
  EXPECT_EQ(secret.body,
            (json{{"type", "Opaque"}, {"immutable", false}, {"data", {{"password", "canary"}, {"username", "app"}}}}));
  EXPECT_THAT(secret.sensitive, UnorderedElementsAre(R"(data["password"])", R"(data["username"])"));
  const Declaration& map = found_["config_map default/app"];
  EXPECT_EQ(map.body, (json{{"data", {{"level", "info"}, {"dsn", "postgres://u:canary@h/d"}}}}));
  EXPECT_THAT(map.sensitive, ElementsAre(R"(data["dsn"])"));
}

TEST_F(Declarations, AReleaseDeclaresItsChartAndTheValuesThatItsProviderDoesNotHide) {
  read({"helm_release", "", "prod", ""});
  EXPECT_EQ(body("helm_release prod/cache")["chart"], "redis");
  EXPECT_EQ(body("helm_release prod/cache")["chart_version"], "20.1.0");
  EXPECT_EQ(body("helm_release prod/cache")["values"]["auth"]["enabled"], true);
  EXPECT_THAT(found_["helm_release prod/cache"].sensitive, ElementsAre("values"));
  EXPECT_EQ(body("helm_release prod/bus"),
            (json{{"chart", "kafka"}, {"chart_version", "31.0.0"}, {"app_version", "3.9.0"}}));
}

TEST_F(Declarations, APasswordOfRedisIsDeclaredAsAclListShowsIt) {
  read({"rediscloud_acl_user", "", "cache", ""});
  // printf %s canary | sha256sum
  EXPECT_EQ(body("acl_user app")["passwords"],
            json::array({"e100fbce008c04ec40637af0af91fb2f05aeedc23f856a2d3c0b1580625d755e"}));
  EXPECT_THAT(found_["acl_user app"].sensitive, ElementsAre("passwords"));
}

TEST_F(Declarations, ARuleMayNameTheProviderConfigurationOrTheAddress) {
  read({"postgresql_role", "eu", "db", ""});
  EXPECT_THAT(matched_, ElementsAre("module.db.postgresql_role.app"));
  matched_.clear();
  read({"postgresql_role", "postgresql.eu", "db", ""});
  EXPECT_THAT(matched_, ElementsAre("module.db.postgresql_role.app"));
  matched_.clear();
  read({"postgresql_role", "postgresql", "db", ""});
  EXPECT_THAT(matched_, ElementsAre("postgresql_role.guest"));
  matched_.clear();
  read({"module.db.*", "", "db", ""});
  EXPECT_THAT(matched_, ElementsAre("module.db.postgresql_role.app"));
}

TEST_F(Declarations, EveryKindThatARuleCanDeclareIsToldComplete) {
  EXPECT_THAT(declared_kinds({"postgresql_*", "", "db", ""}),
              UnorderedElementsAre("role", "database", "extension", "schema", "publication", "subscription", "slot"));
  EXPECT_THAT(declared_kinds({"kafka_topic", "", "bus", ""}), UnorderedElementsAre("topic"));
}

TEST_F(Declarations, LabelledResourcesAreBackendsWithReferencesToTheirSecrets) {
  Settings settings;
  settings.discover.push_back({"aws_db_instance", "tags", "endpoint", "port", "engine_version", "postgresql", {}, {}});
  read({"none", "", "", ""}, settings);
  const auto& db = backend("orders-db");
  EXPECT_EQ(db.type, "postgres");
  EXPECT_THAT(db.endpoints, ElementsAre("pg.prod.svc.cluster.local:5432"));
  EXPECT_EQ(db.credentials, (std::map<std::string, std::string>{{"password", "k8s:prod/db#password"},
                                                                {"username", "k8s:prod/db#username"}}));
  EXPECT_EQ(db.metadata.at("address"), "kubernetes_secret_v1.db");
  EXPECT_EQ(db.metadata.at("serial"), "12");
  const auto& cache = backend("cache");
  EXPECT_EQ(cache.type, "redis");
  EXPECT_THAT(cache.endpoints, ElementsAre("cache-redis-master.prod.svc.cluster.local:6379"));
  EXPECT_EQ(cache.credentials.at("password"), "k8s:prod/cache-redis#redis-password");
  EXPECT_EQ(cache.metadata.at("helm_version"), "20.1.0");
  const auto& ledger = backend("ledger");
  EXPECT_THAT(ledger.endpoints, ElementsAre("ledger.example:5432"));
  EXPECT_EQ(ledger.version, "16.3");
  EXPECT_TRUE(ledger.external);
  EXPECT_THAT(why_, ElementsAre(HasSubstr("backend untyped has no type; label it prism.io/backend-type")));
  EXPECT_EQ(backends_.size(), 3u) << "the chart `bus` has no label";
}

TEST(TerraformSigV4, SignsAsTheExampleOfTheDocumentation) {
  // "Example: GET Bucket Lifecycle", Signature Calculations for the Authorization Header, Amazon S3 API reference
  AwsRequest request;
  request.host = "examplebucket.s3.amazonaws.com";
  request.path = "/";
  request.query = "lifecycle=";
  request.region = "us-east-1";
  request.now_ns = 1369353600ll * 1'000'000'000;
  const auto headers = sign_v4(request, {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""});
  EXPECT_THAT(headers, Contains("x-amz-date: 20130524T000000Z"));
  EXPECT_THAT(headers,
              Contains(HasSubstr("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")));
}

/// As long as it lives OpenSSL has no algorithm, as if memory had run out.
struct NoAlgorithms {
  NoAlgorithms() { EVP_set_default_properties(nullptr, "provider=none"); }
  ~NoAlgorithms() { EVP_set_default_properties(nullptr, ""); }
};

// Found by driftd-check (memory.failing_allocations): a state ended the worker, and what lay on the stack was declared
// as the digest of a password.
TEST(TerraformDigest, ThatCannotBeComputedIsAnErrorAndNoOtherText) {
  const Spool spool = spool_of(R"({"version": 4, "serial": 1, "lineage": "abc", "outputs": {}, "resources": []})");
  const NoAlgorithms none;
  EXPECT_THROW(redis_digest("secret"), sdk::Failure);
  EXPECT_THROW(sign_v4({}, {"key", "secret", ""}), sdk::Failure);
  EXPECT_THROW(read_head(spool), sdk::Failure);
}

}  // namespace
}  // namespace driftd::terraform
