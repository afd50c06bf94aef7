// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "terraform/declare.hpp"

namespace driftd::terraform {

/// What a table of attributes cannot say of one type. Adds to `out`; false with `why`: it cannot be told.
struct Special {
  const nlohmann::json& attributes;
  const Declares& rule;
  Declared& out;
  std::string& why;
};

bool postgres_role(const Special& of);
bool in_database(const Special& of);  ///< id `<database>.<name>`
bool kafka_config(const Special& of);
bool kafka_acl(const Special& of);            ///< of Mongey/kafka
bool confluent_acl(const Special& of);
bool kubernetes_data(const Special& of);      ///< Secret
bool kubernetes_config(const Special& of);    ///< ConfigMap
bool helm_release(const Special& of);
bool redis_user(const Special& of);

/// `metadata` of Kubernetes and Helm resources: a list of one in older providers, an object in newer ones.
const nlohmann::json& metadata_of(const nlohmann::json& attributes);

}  // namespace driftd::terraform
