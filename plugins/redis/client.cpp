// SPDX-License-Identifier: Apache-2.0
#include "redis/client.hpp"

#include <cerrno>
#include <cstring>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>

namespace driftd::redis {
namespace {

using Steady = std::chrono::steady_clock;

Reply convert(const redisReply& reply) {
  Reply out;
  switch (reply.type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_ERROR:
      out.type = Reply::Type::text;
      out.text.assign(reply.str, reply.len);
      break;
    case REDIS_REPLY_INTEGER:
      out.type = Reply::Type::number;
      out.number = reply.integer;
      break;
    case REDIS_REPLY_ARRAY:
      out.type = Reply::Type::list;
      for (std::size_t i = 0; i < reply.elements; ++i) out.list.push_back(convert(*reply.element[i]));
      break;
    default: break;
  }
  return out;
}

bool starts(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

[[noreturn]] void refuse(const std::string& where, const std::string& command, const std::string& error,
                         const std::string& kind, const std::string& right) {
  const std::string text = where + ": " + command + ": " + error;
  if (starts(error, "NOPERM")) throw sdk::Failure(DRIFTD_DENIED, text, kind, right);
  if (starts(error, "NOAUTH") || starts(error, "WRONGPASS") || starts(error, "ERR invalid password")) {
    throw sdk::Failure(DRIFTD_UNAUTHENTICATED, text, kind);
  }
  if (starts(error, "LOADING") || starts(error, "MASTERDOWN") || starts(error, "BUSY")) {
    throw sdk::Failure(DRIFTD_UNAVAILABLE, text, kind);
  }
  if (starts(error, "ERR unknown")) throw sdk::Failure(DRIFTD_UNSUPPORTED, text, kind);
  throw sdk::Failure(DRIFTD_CORRUPT, text, kind);
}

std::string where_of(const Settings& settings) {
  return "redis " + (settings.socket.empty() ? settings.host + ":" + std::to_string(settings.port) : settings.socket);
}

redisContext* begin(const Settings& settings) {
  if (!settings.socket.empty()) return redisConnectUnixNonBlock(settings.socket.c_str());
  return redisConnectNonBlock(settings.host.c_str(), settings.port);
}

}  // namespace

Client::Client(redisContext* context, std::string where, std::chrono::milliseconds call_most)
    : context_(context), where_(std::move(where)), call_most_(call_most) {}

Client::~Client() { redisFree(context_); }

void Client::wait(sdk::Call& call, short events, Steady::time_point until) const {
  const Steady::time_point deadline{std::chrono::nanoseconds(call.deadline_ns())};
  const auto end = std::min(until, deadline);
  while (true) {
    if (call.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, where_ + ": cancelled");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Steady::now()).count();
    if (left <= 0) {
      throw sdk::Failure(end == deadline ? DRIFTD_DEADLINE : DRIFTD_UNAVAILABLE, where_ + ": no answer in time");
    }
    pollfd fds[2] = {{context_->fd, events, 0}, {call.cancel_fd(), POLLIN, 0}};
    const int ready = ::poll(fds, 2, static_cast<int>(left));
    if (ready < 0 && errno != EINTR) throw sdk::Failure(DRIFTD_INTERNAL, where_ + ": poll: " + std::strerror(errno));
    if (ready > 0 && fds[0].revents != 0) return;
  }
}

std::unique_ptr<Client> Client::connect(sdk::Call& call, const Settings& settings, std::chrono::milliseconds most) {
  const std::string where = where_of(settings);
  redisContext* context = begin(settings);
  if (context == nullptr) throw sdk::Failure(DRIFTD_INTERNAL, where + ": out of memory");
  std::unique_ptr<Client> client(new Client(context, where, std::min(most, settings.call)));
  if (context->err != 0) throw sdk::Failure(DRIFTD_UNAVAILABLE, where + ": " + context->errstr);
  client->wait(call, POLLOUT, Steady::now() + std::min(most, settings.connect));
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(context->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
    throw sdk::Failure(DRIFTD_UNAVAILABLE, where + ": " + std::strerror(error));
  }
  if (settings.password_token.empty()) return client;
  std::vector<std::string> auth{"AUTH"};
  if (!settings.username.empty()) auth.push_back(settings.username);
  auth.push_back(call.secret(settings.password_token));
  const Reply answer = client->roundtrip(call, auth, most);
  std::fill(auth.back().begin(), auth.back().end(), '\0');
  if (answer.text != "OK") {
    // Whatever a server says to AUTH, the text may quote the user but never the password.
    throw sdk::Failure(DRIFTD_UNAUTHENTICATED, where + ": AUTH as '" +
                                                   (settings.username.empty() ? "default" : settings.username) +
                                                   "' was refused: " + answer.text);
  }
  return client;
}

Reply Client::roundtrip(sdk::Call& call, const std::vector<std::string>& words, std::chrono::milliseconds most) {
  std::vector<const char*> argv;
  std::vector<std::size_t> sizes;
  for (const auto& word : words) {
    argv.push_back(word.data());
    sizes.push_back(word.size());
  }
  const auto until = Steady::now() + most;
  if (redisAppendCommandArgv(context_, static_cast<int>(argv.size()), argv.data(), sizes.data()) != REDIS_OK) {
    throw sdk::Failure(DRIFTD_UNAVAILABLE, where_ + ": " + context_->errstr);
  }
  for (int done = 0; done == 0;) {
    wait(call, POLLOUT, until);
    if (redisBufferWrite(context_, &done) != REDIS_OK) {
      throw sdk::Failure(DRIFTD_UNAVAILABLE, where_ + ": " + context_->errstr);
    }
  }
  void* raw = nullptr;
  while (raw == nullptr) {
    if (redisGetReplyFromReader(context_, &raw) != REDIS_OK) {
      throw sdk::Failure(DRIFTD_CORRUPT, where_ + ": " + context_->errstr);
    }
    if (raw != nullptr) break;
    wait(call, POLLIN, until);
    if (redisBufferRead(context_) != REDIS_OK) {
      throw sdk::Failure(DRIFTD_UNAVAILABLE, where_ + ": " + context_->errstr);
    }
  }
  const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(static_cast<redisReply*>(raw), freeReplyObject);
  if (reply->type == REDIS_REPLY_ERROR && words.front() != "AUTH") {
    refuse(where_, words.front(), std::string(reply->str, reply->len), {}, {});
  }
  return convert(*reply);
}

Reply Client::command(sdk::Call& call, const std::vector<std::string>& words, const std::string& kind,
                      const std::string& right) {
  try {
    return roundtrip(call, words, call_most_);
  } catch (sdk::Failure& failure) {
    failure.kind = kind;
    if (failure.code == DRIFTD_DENIED) failure.right = right;
    throw;
  }
}

}  // namespace driftd::redis
