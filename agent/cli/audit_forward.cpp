// SPDX-License-Identifier: Apache-2.0
// `driftd audit export --to tls://HOST:PORT`: each line reaches the server at least once. A batch has a connection of
// its own, and the state moves on only after the server has closed it, which it does when it has read everything.
#include <algorithm>
#include <csignal>
#include <thread>

#include "cli/audit_cursor.hpp"
#include "cli/audit_export.hpp"
#include "cli/syslog_stream.hpp"

namespace driftd::cli {
namespace {

using std::chrono::seconds;

constexpr seconds kFirstPause{1}, kLongestPause{30};
constexpr const char* kLines = "500";  // of a batch: a lost connection repeats at most this many

class Forward {
 public:
  Forward(const Context& context, const ExportOptions& options, SyslogServer server)
      : context_(context),
        options_(options),
        since_(options.since),
        server_(std::move(server)),
        client_(context.client()) {}

  int run();

 private:
  /// Sends what there is. Returns false if there is nothing more now.
  Outcome<bool> step();
  Outcome<bool> send(const core::Value::Array& lines);
  /// Fails if the line that the state names is another one now.
  Outcome<bool> check_cursor();
  void pause(const Failure& failure);

  const Context& context_;
  const ExportOptions& options_;
  SinceTime since_;
  const SyslogServer server_;
  const Client client_;
  core::AuditOrigin origin_;
  AuditCursor cursor_;
  bool checked_ = false;
  std::string reported_;  ///< the last failure that was printed
  seconds wait_ = kFirstPause;
};

/// An error of the server or the network is one that a later try may not meet; of a file it is not.
Failure failure_of(const Error& error) {
  return {error.code == Code::unavailable ? kUnreachable : kUsage, error.message};
}

int Forward::run() {
  if (!options_.state.empty()) {
    auto read = AuditCursor::read(options_.state);
    if (!read) return context_.fail(failure_of(read.error()));
    cursor_ = std::move(*read);
    if (!cursor_.id.empty()) since_ = SinceTime({});  // what was begun goes on without a gap
  }
  if (cursor_.id.empty()) cursor_.id = options_.after.empty() ? "0" : options_.after;
  for (;;) {
    const auto more = step();
    if (!more && (!options_.follow || more.error().exit != kUnreachable)) {
      Failure failure = more.error();
      failure.message += "; the server has the lines up to " + cursor_.id;
      if (options_.state.empty()) failure.message += ": go on with --after " + cursor_.id;
      return context_.fail(failure);
    }
    if (!more) {
      pause(more.error());
      continue;
    }
    reported_.clear();
    wait_ = kFirstPause;
    if (!*more && !options_.follow) return kOk;
  }
}

/// A follower outlives the agent's restarts and the server's.
void Forward::pause(const Failure& failure) {
  if (failure.message != reported_) {
    context_.streams.err << "driftd: " << failure.message << "; trying again from line " << cursor_.id << " on\n";
    context_.streams.err.flush();
    reported_ = failure.message;
  }
  std::this_thread::sleep_for(wait_);
  wait_ = std::min(2 * wait_, kLongestPause);
}

Outcome<bool> Forward::check_cursor() {
  if (checked_ || cursor_.hash.empty()) return true;
  const std::string before = std::to_string(std::stoull(cursor_.id) - 1);
  const auto answer = client_.get("/v1/audit", {{"after", before}, {"limit", "1"}});
  if (!answer) return tl::unexpected(answer.error());
  const auto lines = list(*answer, "audit");
  const bool there = !lines.empty() && text(lines.front(), "id") == cursor_.id;
  const bool other = there && text(lines.front(), "hash") != cursor_.hash;
  if (other || (lines.empty() && !there)) {
    return tl::unexpected(Failure{
        kFinding, "--state: line " + cursor_.id + " of " + options_.state + " is not in this agent's audit log" +
                      (other ? std::string(", which has another one under that number") : std::string()) +
                      "; the store was restored or is another agent's. Compare with `driftd audit verify`, then remove "
                      "the file to send everything, or name another"});
  }
  checked_ = true;  // a line that is not there any more was pruned, and later ones are
  return true;
}

Outcome<bool> Forward::step() {
  if (origin_.host.empty()) {
    auto origin = audit_origin(client_);
    if (!origin) return tl::unexpected(origin.error());
    origin_ = std::move(*origin);
  }
  if (const auto same = check_cursor(); !same) return same;
  const Query query{{"after", cursor_.id}, {"limit", kLines}, {"wait", options_.follow ? "20" : ""}};
  const auto answer = client_.get("/v1/audit", query);
  if (!answer) return tl::unexpected(answer.error());
  const auto lines = list(*answer, "audit");
  if (lines.empty()) return false;
  return send(lines);
}

Outcome<bool> Forward::send(const core::Value::Array& lines) {
  std::vector<std::string> messages;
  for (const auto& line : lines) {
    if (!since_.has(line)) continue;
    auto message = render_line(line, options_, origin_);
    if (!message) return tl::unexpected(message.error());
    messages.push_back(std::move(*message));
  }
  if (!messages.empty()) {
    auto stream = SyslogStream::open(server_);
    if (!stream) return tl::unexpected(failure_of(stream.error()));
    for (const auto& message : messages) {
      if (const Status sent = stream->send(message); !sent) return tl::unexpected(failure_of(sent.error()));
    }
    if (const Status read = stream->finish(); !read) return tl::unexpected(failure_of(read.error()));
  }
  cursor_ = {text(lines.back(), "id"), text(lines.back(), "hash")};
  if (options_.state.empty()) return true;
  if (const Status kept = cursor_.write(options_.state); !kept) {
    return tl::unexpected(Failure{kFinding, kept.error().message + "; what was sent would be sent again"});
  }
  return true;
}

}  // namespace

int forward_audit(const Context& context, const ExportOptions& options) {
  auto server = parse_syslog_server(options.to);
  if (!server) return context.fail(kUsage, server.error().message);
  if (options.format != "syslog")
    return context.fail(kUsage, "--to sends syslog; expected --format syslog, found " + options.format);
  if (options.cert.empty() != options.key.empty())
    return context.fail(kUsage, "expected both of --cert and --key, or none");
  server->ca = options.ca;
  server->cert = options.cert;
  server->key = options.key;
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to a socket that the server may have closed
  return Forward(context, options, std::move(*server)).run();
}

}  // namespace driftd::cli
