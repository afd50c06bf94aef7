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

/// One instance of each name, serial 7.
std::string tfstate_of(const std::vector<std::string>& topics);

/// The grants of plugins/postgres/README.md, literally, with the password `pg-canary`.
void grant_readme(const PostgresServer& server);

/// Pieces of a config.
std::string redis_backend(const RedisServer& server);
std::string terraform_backend(const std::string& path);
std::string postgres_backend(const PostgresServer& server);
std::string nats_sink(const NatsServer& server);
std::string webhook_sink(const HttpReceiver& receiver);

/// Replaces a file by rename, as Terraform does.
void replace_file(const std::string& path, const std::string& text);

/// `ce-subject` (`backend/kind/id`) of each canonical message of the stream → its ids, in the stream's order.
std::map<std::string, std::vector<std::string>> events_of_stream(const NatsServer& server);
/// CloudEvents subject → ids, as a webhook receiver got them.
std::map<std::string, std::vector<std::string>> events_of_webhook(const HttpReceiver& receiver);

/// A line of /proc/PID/status, such as `VmRSS:`; -1: there is none.
long kib_of(pid_t pid, const std::string& name);

}  // namespace driftd::test
