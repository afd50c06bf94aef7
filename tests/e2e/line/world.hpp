// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <set>

#include "support/agent.hpp"
#include "support/http_receiver.hpp"
#include "support/nats.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"

namespace driftd::test {

/// A Terraform state file of format v4 with one resource and one secret.
std::string tfstate(int serial, int partitions, const std::string& secret = "tf-canary");

/// A Terraform state file with one topic of each name, serial 7.
std::string tfstate_of(const std::vector<std::string>& topics);

/// Executes the grants of plugins/postgres/README.md exactly as they are printed, with the password `pg-canary`.
void grant_readme(const PostgresServer& server);

/// Parts of a configuration: the backends `cache`, `platform` and `orders-db`, the sinks `bus` and `ops`.
std::string redis_backend(const RedisServer& server);
std::string terraform_backend(const std::string& path);
std::string postgres_backend(const PostgresServer& server);
std::string nats_sink(const NatsServer& server);
std::string webhook_sink(const HttpReceiver& receiver);

/// Replaces a file by rename, as Terraform does.
void replace_file(const std::string& path, const std::string& text);

/// Returns the ids of the events in the stream DRIFT by their `ce-subject` (`backend/kind/id`), in the stream's order.
std::map<std::string, std::vector<std::string>> events_of_stream(const NatsServer& server);
/// Returns the ids of the events that the receiver accepted by their CloudEvents subject, in the order of arrival.
std::map<std::string, std::vector<std::string>> events_of_webhook(const HttpReceiver& receiver);

/// Returns the KiB of a line of /proc/PID/status, such as `VmRSS:`, or -1 if there is none.
long kib_of(pid_t pid, const std::string& name);

}  // namespace driftd::test
