// SPDX-License-Identifier: Apache-2.0
#include "redis_slot.hpp"

#include <utility>

namespace example {
namespace {

using driftd::consumer::Code;
using driftd::consumer::Error;
using driftd::consumer::fail;
using driftd::consumer::Result;
using driftd::consumer::SlotBinding;
using driftd::consumer::SlotConfig;
using driftd::consumer::Status;

constexpr timeval kTimeout{2, 0};
using Connection = ConnectionPool<redisContext>::Pointer;
using Reply = std::unique_ptr<redisReply, void (*)(redisReply*)>;

Reply send(redisContext* context, const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const auto& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  void* reply = redisCommandArgv(context, static_cast<int>(words.size()), texts.data(), sizes.data());
  return Reply(static_cast<redisReply*>(reply), [](redisReply* r) { freeReplyObject(r); });
}

/// Opens a connection and logs in. The words of AUTH are never part of an error.
Result<Connection> open(const SlotConfig& config) {
  Connection out(redisConnectWithTimeout(config.host().c_str(), config.port(), kTimeout), redisFree);
  if (!out) return fail(Code::internal, "no memory for a connection");
  if (out->err != 0) return fail(Code::unavailable, "Redis at " + config.backend.endpoint + ": " + out->errstr);
  redisSetTimeout(out.get(), kTimeout);
  const auto& password = config.credential("password");
  if (password.empty()) return out;
  const auto& user = config.credential("username");
  std::vector<std::string> words = {"AUTH"};
  if (!user.empty()) words.push_back(user.reveal());
  words.push_back(password.reveal());
  const Reply reply = send(out.get(), words);
  if (!reply) return fail(Code::unavailable, "Redis at " + config.backend.endpoint + ": " + out->errstr);
  if (reply->type == REDIS_REPLY_ERROR) {
    return fail(Code::denied, "Redis at " + config.backend.endpoint + " refuses the credential: " + reply->str);
  }
  return out;
}

/// What the pool opens connections with. It owns a copy of the config.
ConnectionPool<redisContext>::Open opener(const SlotConfig& config) {
  return [config] {
    auto opened = open(config);
    return opened ? std::move(*opened) : Connection(nullptr, redisFree);
  };
}

}  // namespace

RedisSlot::RedisSlot(const SlotConfig& config, Pool::Pointer first) : pool_(opener(config), std::move(first)) {}

Result<std::shared_ptr<driftd::consumer::Slot>> RedisSlot::connect(const SlotBinding& binding,
                                                                   const SlotConfig& config) {
  auto first = open(config);
  if (!first) return tl::unexpected<Error>(first.error());
  if (binding.slot_type == "primary") {
    const Reply role = send(first->get(), {"ROLE"});
    const bool primary =
        role && role->type == REDIS_REPLY_ARRAY && role->elements > 0 && std::string(role->element[0]->str) == "master";
    if (!primary) return fail(Code::unavailable, "Redis at " + config.backend.endpoint + " is not a primary");
  }
  return std::shared_ptr<driftd::consumer::Slot>(new RedisSlot(config, std::move(*first)));
}

Status RedisSlot::update_credentials(const SlotConfig& config) {
  auto first = open(config);
  if (!first) return tl::unexpected<Error>(first.error());
  pool_.replace(opener(config), std::move(*first));
  return {};
}

void RedisSlot::disconnect() { pool_.close(); }

Result<std::string> RedisSlot::command(const std::vector<std::string>& words) {
  auto connection = pool_.borrow();
  if (connection.get() == nullptr) return fail(Code::unavailable, "no connection to Redis");
  const Reply reply = send(connection.get(), words);
  if (!reply) {
    const std::string why = connection.get()->errstr;
    connection.drop();
    return fail(Code::unavailable, words[0] + ": " + why);
  }
  if (reply->type == REDIS_REPLY_ERROR) return fail(Code::invalid, words[0] + ": " + reply->str);
  if (reply->type == REDIS_REPLY_INTEGER) return std::to_string(reply->integer);
  return reply->str == nullptr ? std::string() : std::string(reply->str, reply->len);
}

}  // namespace example
