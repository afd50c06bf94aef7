// SPDX-License-Identifier: Apache-2.0
#include "redis/client.hpp"

#include <hiredis/hiredis.h>
#include <algorithm>

namespace driftd::redis {
namespace {

constexpr std::size_t kPage = 16'384;

Reply convert(const redisReply& reply) {
  Reply out;
  switch (reply.type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_ERROR:
      out.type = reply.type == REDIS_REPLY_ERROR ? Reply::Type::error : Reply::Type::text;
      out.text.assign(reply.str, reply.len);
      std::fill_n(reply.str, reply.len, '\0');  // it may be a password
      break;
    case REDIS_REPLY_INTEGER:
      out.type = Reply::Type::number;
      out.number = reply.integer;
      break;
    case REDIS_REPLY_ARRAY:
      out.type = Reply::Type::list;
      for (std::size_t i = 0; i < reply.elements; ++i) out.list.push_back(convert(*reply.element[i]));
      break;
    default:
      break;
  }
  return out;
}

bool starts(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

bool is_busy(const std::string& error) {
  constexpr const char* kWords[] = {"LOADING",  "MASTERDOWN",  "BUSY",
                                    "TRYAGAIN", "CLUSTERDOWN", "ERR max number of clients"};
  return std::any_of(std::begin(kWords), std::end(kWords), [&](const char* word) { return starts(error, word); });
}

/// The error of AUTH may quote its arguments. Known errors are shown as they are, of others only the first word.
std::string said_to_auth(const std::string& error) {
  constexpr const char* kKnown[] = {"WRONGPASS invalid username-password pair or user is disabled",
                                    "ERR invalid password",
                                    "ERR AUTH <password> called without any password configured for the default user",
                                    "ERR Client sent AUTH, but no password is set",
                                    "ERR wrong number of arguments",
                                    "ERR unknown command",
                                    "ERR max number of clients reached",
                                    "LOADING",
                                    "NOPERM",
                                    "DENIED Redis is running in protected mode"};
  for (const char* known : kKnown) {
    if (starts(error, known)) return known;
  }
  return error.substr(0, std::min<std::size_t>(error.find_first_of(" \r\n"), 32)) +
         " (what follows may quote the password and is not shown)";
}

[[noreturn]] void refuse(const std::string& where, const std::string& command, const std::string& error) {
  // of the caller's
  const std::string text = where + ": " + command + ": " + error.substr(0, error.find(", with args"));
  if (starts(error, "NOPERM")) throw sdk::Failure(DRIFTD_DENIED, text);
  if (starts(error, "NOAUTH") || starts(error, "WRONGPASS") || starts(error, "ERR invalid password")) {
    throw sdk::Failure(DRIFTD_UNAUTHENTICATED, text);
  }
  if (is_busy(error)) throw sdk::Failure(DRIFTD_UNAVAILABLE, text);
  if (starts(error, "ERR unknown") || starts(error, "ERR This instance has cluster support disabled")) {
    throw sdk::Failure(DRIFTD_UNSUPPORTED, text);
  }
  throw sdk::Failure(DRIFTD_CORRUPT, text);
}

/// The bytes of a command, wiped when it is sent: AUTH is one.
class Request {
 public:
  explicit Request(const std::vector<std::string>& words) {
    std::vector<const char*> argv;
    std::vector<std::size_t> sizes;
    for (const auto& word : words) {
      argv.push_back(word.data());
      sizes.push_back(word.size());
    }
    size_ = redisFormatCommandArgv(&bytes_, static_cast<int>(argv.size()), argv.data(), sizes.data());
    if (size_ < 0) throw sdk::Failure(DRIFTD_INTERNAL, "out of memory");
  }
  ~Request() {
    std::fill_n(bytes_, size_, '\0');
    redisFreeCommand(bytes_);
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  std::string_view bytes() const { return {bytes_, static_cast<std::size_t>(size_)}; }

 private:
  char* bytes_ = nullptr;
  int size_ = 0;
};

}  // namespace

void wipe(Reply& reply) {
  std::fill(reply.text.begin(), reply.text.end(), '\0');
  for (auto& one : reply.list) wipe(one);
}

Client::Client(std::unique_ptr<net::Stream> stream, std::string address, std::chrono::milliseconds call_most)
    : stream_(std::move(stream)),
      reader_(redisReaderCreate()),
      address_(std::move(address)),
      call_timeout_(call_most) {
  if (reader_ == nullptr) throw sdk::Failure(DRIFTD_INTERNAL, "out of memory");
}

Client::~Client() { redisReaderFree(reader_); }

std::unique_ptr<Client> Client::connect(sdk::Call& call, const Address& address, const Login& login,
                                        const Settings& settings, std::chrono::milliseconds timeout) {
  const net::Tls* tls = settings.tls && address.socket.empty() ? &*settings.tls : nullptr;
  const net::Peer peer{"redis " + address.text(), address.host, address.port, address.socket};
  auto stream = net::Stream::open(call, peer, tls, Steady::now() + std::min(timeout, settings.connect));
  std::unique_ptr<Client> client(new Client(std::move(stream), address.text(), std::min(timeout, settings.call)));
  if (!login.password_token.empty()) client->log_in(call, login, timeout);
  return client;
}

void Client::log_in(sdk::Call& call, const Login& login, std::chrono::milliseconds timeout) {
  std::vector<std::string> auth{"AUTH"};
  if (!login.username.empty()) auth.push_back(login.username);
  auth.push_back(call.secret(login.password_token));
  const Reply reply = roundtrip(call, auth, timeout);
  std::fill(auth.back().begin(), auth.back().end(), '\0');
  if (reply.text == "OK") return;
  throw sdk::Failure(is_busy(reply.text) ? DRIFTD_UNAVAILABLE : DRIFTD_UNAUTHENTICATED,
                     stream_->where() + ": AUTH as '" + (login.username.empty() ? "default" : login.username) +
                         "' was refused: " + said_to_auth(reply.text));
}

Reply Client::answer(sdk::Call& call, const std::string& command, Steady::time_point until) {
  void* raw = nullptr;
  while (true) {
    if (redisReaderGetReply(reader_, &raw) != REDIS_OK) {
      throw sdk::Failure(DRIFTD_CORRUPT, stream_->where() + ": " + reader_->errstr);
    }
    if (raw != nullptr) break;
    char page[kPage];
    const std::size_t got = stream_->read(call, page, sizeof page, until);
    const int fed = redisReaderFeed(reader_, page, got);
    std::fill_n(page, got, '\0');
    if (fed != REDIS_OK) throw sdk::Failure(DRIFTD_CORRUPT, stream_->where() + ": " + reader_->errstr);
  }
  const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(static_cast<redisReply*>(raw), freeReplyObject);
  if (reply->type == REDIS_REPLY_ERROR && command != "AUTH") {
    refuse(stream_->where(), command, std::string(reply->str, reply->len));
  }
  return convert(*reply);
}

Reply Client::roundtrip(sdk::Call& call, const std::vector<std::string>& words, std::chrono::milliseconds timeout) {
  const auto until = Steady::now() + timeout;
  stream_->write(call, Request(words).bytes(), until);
  return answer(call, words.front(), until);
}

Reply Client::command(sdk::Call& call, const std::vector<std::string>& words, const std::string& kind,
                      const std::string& right) {
  try {
    return roundtrip(call, words, call_timeout_);
  } catch (sdk::Failure& failure) {
    failure.kind = kind;
    if (failure.code == DRIFTD_DENIED) failure.right = right;
    throw;
  }
}

std::vector<Reply> Client::transaction(sdk::Call& call, const std::vector<std::vector<std::string>>& commands,
                                       const std::string& kind, const std::string& right) {
  command(call, {"MULTI"}, kind, right);
  for (const auto& words : commands) command(call, words, kind, right);
  Reply all = command(call, {"EXEC"}, kind, right);
  const bool whole = all.type == Reply::Type::list && all.list.size() == commands.size();
  if (!whole) throw sdk::Failure(DRIFTD_CORRUPT, stream_->where() + ": EXEC: expected an answer to each command", kind);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (all.list[i].type != Reply::Type::error) continue;
    const std::string error = all.list[i].text;
    wipe(all);
    refuse(stream_->where(), commands[i].front(), error);
  }
  return std::move(all.list);
}

Reply Client::message(sdk::Call& call) { return answer(call, "SUBSCRIBE", Steady::time_point::max()); }

}  // namespace driftd::redis
