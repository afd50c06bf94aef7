// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driftd/sdk/extensions.hpp"
#include "terraform/mapping.hpp"
#include "terraform/spool.hpp"

namespace driftd::terraform {

/// Answers a request to put values back. It is never done: a state is what the last apply left, so the way back is an
/// apply, which a person runs. The outcome is FAILED with that command as the detail `instead`, or SUCCESS if every
/// value is there already. Pure. Throws NOT_FOUND, CONFLICT as driftd.apply says, INVALID for an identity that this
/// state cannot have, UNSUPPORTED if the state is encrypted.
sdk::Applied answer_apply(const Spool& state, const Reading& reading, const Settings& settings,
                          const sdk::Apply& request);

/// `terraform apply -target='module.m.kafka_topic.t["k"]'`; tofu if the provider comes from OpenTofu's registry.
std::string apply_command(const std::string& address, const std::string& provider);

}  // namespace driftd::terraform
