// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "terraform/declare.hpp"

namespace driftd::terraform {

/// Arguments of a mapping that a table of attributes cannot express. It adds to `out`; it returns false and sets `why`
/// if the instance cannot be mapped.
struct CustomMapping {
  const nlohmann::json& attributes;
  const DeclarationRule& rule;
  Declaration& out;
  std::string& why;
};

bool postgres_role(const CustomMapping& of);
bool postgres_publication(const CustomMapping& of);
bool postgres_subscription(const CustomMapping& of);  ///< the id is `<database>.<name>`, of any database
bool postgres_logical_slot(const CustomMapping& of);
bool postgres_physical_slot(const CustomMapping& of);
bool kafka_config(const CustomMapping& of);
bool kafka_acl(const CustomMapping& of);  ///< Mongey/kafka
bool confluent_acl(const CustomMapping& of);
bool kubernetes_data(const CustomMapping& of);    ///< Secret
bool kubernetes_config(const CustomMapping& of);  ///< ConfigMap
bool kubernetes_service(const CustomMapping& of);
bool kubernetes_workload(const CustomMapping& of);  ///< Deployment, StatefulSet, DaemonSet
bool helm_release(const CustomMapping& of);
bool redis_user(const CustomMapping& of);      ///< of RedisLabs/rediscloud
bool redis_acl_user(const CustomMapping& of);  ///< of Linero/redis
bool redisacl_user(const CustomMapping& of);   ///< of B3ns44d/redisacl

/// Returns a member of an object, null if there is none.
const nlohmann::json& member(const nlohmann::json& from, const char* key);
/// Returns a nested block: the object in a list of one.
const nlohmann::json& block(const nlohmann::json& from, const char* key);
/// Sets the id to `<namespace>/<name>` of its metadata; returns false and sets `why` if there is no name.
bool kubernetes_id(const CustomMapping& of);
/// Sets the id to `<database>.<name>`; returns false and sets `why` if the rule is for other databases.
bool in_database(const CustomMapping& of);
/// Returns the digest that ACL LIST shows for a password.
std::string redis_digest(std::string password);

/// `metadata` of Kubernetes and Helm resources: a list of one in older providers, an object in newer ones.
const nlohmann::json& metadata_of(const nlohmann::json& attributes);

}  // namespace driftd::terraform
