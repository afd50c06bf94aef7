// SPDX-License-Identifier: Apache-2.0
#include "support/redis.hpp"

#include <hiredis/hiredis.h>
#include <algorithm>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace driftd::test {
namespace {

std::string text_of(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
  if (reply.type != REDIS_REPLY_ARRAY) return reply.str == nullptr ? std::string() : std::string(reply.str, reply.len);
  std::string out;
  for (std::size_t i = 0; i < reply.elements; ++i) out += (i == 0 ? "" : "\n") + text_of(*reply.element[i]);
  return out;
}

/// Returns the program of a release, which the setup test has fetched. Empty means Debian's.
std::string program_of(const std::string& release) {
  if (release.empty()) return "redis-server";
  const Output out =
      run({std::string(DRIFTD_SOURCE_DIR) + "/tests/servers/redis/fetch.sh", release}, {}, std::chrono::minutes(5));
  if (out.code != 0) throw std::runtime_error("fetch.sh " + release + ":\n" + out.err);
  return out.out.substr(0, out.out.find('\n'));
}

/// Returns a free port. Redis before 7.0 has its cluster bus at its port + 10000, so that one must be free, too.
int port_for(const std::vector<std::string>& options) {
  const auto has = [&](const char* option) {
    return std::find(options.begin(), options.end(), option) != options.end();
  };
  return has("--cluster-enabled") && !has("--cluster-port") ? free_port(10'000) : free_port();
}

}  // namespace

RedisServer::RedisServer(std::vector<std::string> options, const std::string& release)
    : program_(program_of(release)),
      port_(port_for(options)),
      options_(std::move(options)) {
  start();
}

void RedisServer::start() {
  std::vector<std::string> command{program_};
  const bool has_file = !options_.empty() && !options_.front().starts_with("--");
  if (has_file) command.push_back(options_.front());
  const std::vector<std::string> ours{
      "--port", std::to_string(port_), "--bind", "127.0.0.1",   "--dir", dir_.path().string(), "--save",
      "",       "--appendonly",        "no",     "--daemonize", "no"};
  command.insert(command.end(), ours.begin(), ours.end());
  command.insert(command.end(), options_.begin() + (has_file ? 1 : 0), options_.end());
  child_ = Child(command, {dir_.file("redis.log"), {}, {}});
  if (!eventually([this] { return !this->command({"PING"}).empty(); })) {
    throw std::runtime_error("redis-server did not start:\n" + read_file(dir_.file("redis.log")));
  }
}

std::string RedisServer::command(const std::vector<std::string>& words) const { return redis_command(port_, words); }

std::string redis_command(int port, const std::vector<std::string>& words) {
  const std::unique_ptr<redisContext, decltype(&redisFree)> context(redisConnect("127.0.0.1", port), redisFree);
  if (context == nullptr || context->err != 0) return {};
  std::vector<const char*> argv;
  std::vector<std::size_t> sizes;
  for (const auto& word : words) {
    argv.push_back(word.data());
    sizes.push_back(word.size());
  }
  void* raw = redisCommandArgv(context.get(), static_cast<int>(argv.size()), argv.data(), sizes.data());
  if (raw == nullptr) return {};
  const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(static_cast<redisReply*>(raw), freeReplyObject);
  return text_of(*reply);
}

std::string readme_block(const std::string& provider, const std::string& heading, const std::string& language) {
  const std::string text = read_file(std::string(DRIFTD_SOURCE_DIR) + "/plugins/" + provider + "/README.md");
  const auto at = text.find(heading);
  const std::string fence = "```" + language + "\n";
  const auto begin = text.find(fence, at);
  const auto end = text.find("```", begin + fence.size());
  if (at == std::string::npos || begin == std::string::npos || end == std::string::npos) {
    throw std::runtime_error("plugins/" + provider + "/README.md has no " + fence + " block under " + heading);
  }
  return text.substr(begin + fence.size(), end - begin - fence.size());
}

std::string readme_grants(const std::string& provider, const std::string& language) {
  return readme_block(provider, "## Rights", language);
}

namespace {

/// Runs each line of a README's block, with CHANGE-ME replaced by the password.
void run_block(int port, const std::string& block, const std::string& password) {
  std::istringstream lines(block);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.empty() || line.front() == '#') continue;
    const auto at = line.find("CHANGE-ME");
    if (at != std::string::npos) line.replace(at, 9, password);
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    const std::string answer = redis_command(port, words);
    if (answer != "OK") throw std::runtime_error("the README's grant was refused: " + answer);
  }
}

}  // namespace

void RedisServer::grant_readme(const std::string& password) const {
  run_block(port_, readme_grants("redis", "redis"), password);
}

RedisSentinel::RedisSentinel(const std::string& master, int primary_port, const std::string& release)
    : port_(free_port()) {
  const std::string conf =
      dir_.write("sentinel.conf", "port " + std::to_string(port_) + "\nbind 127.0.0.1\ndir " + dir_.path().string() +
                                      "\nsentinel monitor " + master + " 127.0.0.1 " + std::to_string(primary_port) +
                                      " 1\nsentinel down-after-milliseconds " + master +
                                      " 1000\nsentinel failover-timeout " + master + " 5000\n");
  child_ = Child({program_of(release), conf, "--sentinel"}, {dir_.file("sentinel.log"), {}, {}});
  if (!eventually([this] { return command({"PING"}) == "PONG"; })) {
    throw std::runtime_error("the Sentinel did not start:\n" + read_file(dir_.file("sentinel.log")));
  }
}

std::string RedisSentinel::command(const std::vector<std::string>& words) const { return redis_command(port_, words); }

void RedisSentinel::grant_readme(const std::string& password) const {
  run_block(port_, readme_block("redis", "### At a Sentinel", "redis"), password);
}

}  // namespace driftd::test
