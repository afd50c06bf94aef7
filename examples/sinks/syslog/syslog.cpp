// SPDX-License-Identifier: Apache-2.0
// A sink plugin that sends each event to a syslog server as RFC 5424 says. Read it from the end: the plugin describes
// itself, opens an instance from its settings, and delivers batches. rfc5424.cpp has the form of a message, wire.cpp
// the connection.
//
// What counts as delivered. Syslog has no acknowledgement. Over TCP and TLS each batch has a connection of its own, and
// its events are delivered if the server ends it as one does that has read everything (end.cpp). Over UDP an event is
// delivered when it was sent, and may be lost without a trace (RFC 5426, section 4.1). Over a Unix socket it is
// delivered when it is in the receiver's queue: the kernel loses nothing on the way, and makes a sender wait if the
// queue is full, but a receiver that ends takes what it has not read with it.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>

#include "driftd/sink.hpp"
#include "fields.hpp"
#include "rfc5424.hpp"
#include "wire.hpp"

namespace {

using namespace syslog_sink;
namespace sink = sdk::sink;

// ---- What the plugin says of itself.

// A batch is one connection, and two of them at a time keep a log server busy.
constexpr const char* kDescribe = R"json({"id": "syslog", "version": "0.1.0", "title": "Syslog (RFC 5424)",
  "bodies": ["application/cloudevents+json"], "batch": {"events": 128, "bytes": 4194304}, "concurrency": 2,
  "retry": "forever"})json";

constexpr const char* kSettings = R"json({
  "type": "object", "oneOf": [{"required": ["address"]}, {"required": ["socket"]}], "additionalProperties": false,
  "properties": {
    "address": {"type": "string", "description": "host:port; the port of TLS is 6514, of TCP and UDP 514"},
    "socket": {"type": "string", "format": "socket", "description": "Unix datagram socket, such as /dev/log"},
    "transport": {"type": "string", "enum": ["tls", "tcp", "udp", "unix"],
                  "description": "default: tls to an address, unix to a socket"},
    "server_name": {"type": "string", "description": "name in the server's certificate; default: the host"},
    "ca": {"type": "string", "format": "path", "description": "authorities in PEM; default: the system's"},
    "cert": {"type": "string", "format": "path", "description": "client certificate with its chain, PEM"},
    "key": {"type": "string", "format": "path", "description": "its key, PEM"},
    "facility": {"type": "integer", "minimum": 0, "maximum": 23, "description": "default: 16 (local0)"},
    "hostname": {"type": "string", "description": "HOSTNAME of the messages; default: this machine's name"},
    "app_name": {"type": "string", "description": "APP-NAME; default: driftd"},
    "enterprise": {"type": "integer", "minimum": 1, "description": "your IANA number, for the structured data"},
    "message": {"type": "string", "enum": ["summary", "event"], "description": "one line, or the whole JSON"},
    "max_bytes": {"type": "integer", "minimum": 480, "maximum": 1048576,
                  "description": "of a message; default: 8192, of UDP 2048"}}})json";

// ---- One opened sink. It does not change after open, so its calls may run at the same time.

class Syslog final : public sink::Instance {
 public:
  Syslog(Endpoint endpoint, Form form) : endpoint_(std::move(endpoint)), form_(std::move(form)) {}

  void deliver(sink::Delivery& call, const sink::Batch& batch) override {
    if (endpoint_.datagrams()) return deliver_datagrams(call, batch);
    // What is thrown here is about the endpoint: no event of the batch is settled, and the host sends all again.
    Stream stream(call, endpoint_, call.deadline_ns());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::string text = message(batch[i], form_);
      // Octet counting (RFC 6587, section 3.4.1): the length, a space, the message. Line ends inside do no harm.
      stream.write(std::to_string(text.size()) + " " + text);
    }
    stream.finish();
    for (std::size_t i = 0; i < batch.size(); ++i) call.delivered(i);
  }

  // Connects, and over TLS shakes hands, but sends nothing. The host asks for an answer within a second.
  sdk::Health probe(sink::Call& call) override {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    const std::int64_t begun = now.tv_sec * 1'000'000'000ll + now.tv_nsec;
    const std::int64_t until = std::min(call.deadline_ns(), begun + 800'000'000);
    if (endpoint_.datagrams()) {
      connect_to(call, endpoint_, until);
      if (endpoint_.udp) return {DRIFTD_HEALTH_UNKNOWN, 0, "UDP gives no answer"};
    } else {
      const Stream stream(call, endpoint_, until);
    }
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return {DRIFTD_HEALTH_UP, (now.tv_sec * 1'000'000'000ll + now.tv_nsec - begun) / 1'000, {}};
  }

 private:
  void deliver_datagrams(sink::Delivery& call, const sink::Batch& batch) {
    const Fd fd = connect_to(call, endpoint_, call.deadline_ns());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::string text = message(batch[i], form_);
      if (send_datagram(call, fd.get(), text)) {
        call.delivered(i);
      } else {
        call.permanent(i, "a message of " + std::to_string(text.size()) + " bytes fits into no datagram to " +
                              endpoint_.shown() + "; lower max_bytes, or use tls or tcp");
      }
    }
  }

  // Returns false if the message is larger than any datagram to there: it would fail for ever.
  bool send_datagram(sink::Call& call, int fd, const std::string& text) const {
    while (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) < 0) {
      if (errno == EMSGSIZE) return false;
      // ECONNREFUSED: nobody listens there any more. Of UDP it is the answer to an earlier datagram.
      if (errno != EAGAIN && errno != EINTR) unavailable(endpoint_.shown() + ": " + std::strerror(errno));
      wait_for(call, fd, POLLOUT, call.deadline_ns(), endpoint_.shown() + ": sending");
    }
    return true;
  }

  const Endpoint endpoint_;
  const Form form_;
};

// ---- Settings.

[[noreturn]] void invalid(const std::string& setting, const std::string& text) {
  throw sdk::Failure(DRIFTD_INVALID, "settings." + setting + ": " + text);
}

// Splits `host:port`; an IPv6 address stands in brackets.
void read_address(const std::string& address, Endpoint& out) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size())
    invalid("address", "expected host:port, found `" + address + "`");
  out.host = address.substr(0, colon);
  out.port = address.substr(colon + 1);
  const bool digits = out.port.find_first_not_of("0123456789") == std::string::npos && out.port.size() <= 5;
  if (!digits || std::stol(out.port) < 1 || std::stol(out.port) > 65'535)
    invalid("address", "expected a port of 1 to 65535, found `" + out.port + "`");
  if (out.host.front() == '[' && out.host.back() == ']') out.host = out.host.substr(1, out.host.size() - 2);
}

// Returns where the settings lead to.
Endpoint read_endpoint(const Fields& settings) {
  Endpoint out;
  out.socket = get(settings, "socket");
  const std::string transport = get(settings, "transport", out.socket.empty() ? "tls" : "unix");
  out.tls = transport == "tls";
  out.udp = transport == "udp";
  if (transport == "unix") {
    if (out.socket.empty() || out.socket.size() >= sizeof(sockaddr_un::sun_path))
      invalid("socket", "expected the path of a Unix socket, 1 to 107 bytes, found `" + out.socket + "`");
  } else if (!out.socket.empty()) {
    invalid("socket", "is only used with transport: unix");
  } else {
    read_address(get(settings, "address"), out);
  }
  out.server_name = get(settings, "server_name");
  out.ca = get(settings, "ca");
  out.cert = get(settings, "cert");
  out.key = get(settings, "key");
  if (out.cert.empty() != out.key.empty())
    invalid(out.cert.empty() ? "cert" : "key", "is missing: a client certificate needs both");
  for (const char* name : {"server_name", "ca", "cert", "key"}) {
    if (!out.tls && settings.contains(name)) invalid(name, "is only used with transport: tls");
  }
  return out;
}

Form read_form(const Fields& settings, std::size_t max_bytes) {
  Form out;
  out.facility = std::stoi(get(settings, "facility", std::to_string(out.facility)));
  char host_name[256] = "-";
  ::gethostname(host_name, sizeof host_name - 1);
  out.hostname = get(settings, "hostname", host_name);
  out.app_name = get(settings, "app_name", out.app_name);
  out.sd_id = "driftd@" + get(settings, "enterprise", "32473");
  out.whole_event = get(settings, "message") == "event";
  out.max_bytes = std::stoul(get(settings, "max_bytes", std::to_string(max_bytes)));
  return out;
}

// The host has checked the settings against the schema: types and names are right.
std::unique_ptr<sink::Instance> open(sink::Call&, std::string_view, std::string_view text) {
  const auto settings = read_fields(text, [](std::string_view) { return true; });
  if (!settings) throw sdk::Failure(DRIFTD_INVALID, "settings: expected one JSON object");
  Endpoint endpoint = read_endpoint(*settings);
  const std::size_t max_bytes = endpoint.udp ? 2'048 : 8'192;
  return std::make_unique<Syslog>(std::move(endpoint), read_form(*settings, max_bytes));
}

const sink::Plugin& plugin() {
  static const sink::Plugin described{kDescribe, kSettings, &open};
  return described;
}

}  // namespace

DRIFTD_SINK(plugin)
