// SPDX-License-Identifier: Apache-2.0
#include "app/sinks.hpp"

#include <charconv>

#include "core/value.hpp"
#include "sinks/file/file_sink.hpp"
#include "sinks/nats/nats_sink.hpp"
#include "sinks/notifications/notifications_sink.hpp"
#include "sinks/webhook/webhook_sink.hpp"

namespace driftd::app {
namespace {

/// Reads the members of a sink's settings; remembers the first mistake and what nobody asked for.
class Reader {
 public:
  Reader(const config::SinkSpec& spec, const core::Value& settings, std::string where)
      : spec_(spec), where_(std::move(where)) {
    if (const auto* members = settings.object()) left_ = *members;
  }

  void text(const char* name, std::string& to) {
    if (const auto value = take(name)) {
      if (value->string() == nullptr) return wrong(name, "a text");
      to = reveal(*value->string());
    }
  }
  void path(const char* name, std::filesystem::path& to) {
    std::string text_value = to.string();
    text(name, text_value);
    to = text_value;
  }
  void flag(const char* name, bool& to) {
    if (const auto value = take(name)) {
      if (value->boolean() == nullptr) return wrong(name, "true or false");
      to = *value->boolean();
    }
  }
  template <class T>
  void number(const char* name, T& to, std::int64_t least, std::int64_t most) {
    const auto value = take(name);
    if (!value) return;
    std::int64_t out = 0;
    const std::string token = value->number() == nullptr ? std::string() : value->number()->token;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), out);
    if (token.empty() || error != std::errc{} || end != token.data() + token.size() || out < least || out > most) {
      return wrong(name, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    to = static_cast<T>(out);
  }
  /// A number of milliseconds, `<name>_ms`.
  void millis(const char* name, std::chrono::milliseconds& to) {
    std::int64_t out = to.count();
    number(name, out, 1, 3'600'000);
    to = std::chrono::milliseconds(out);
  }
  void texts(const char* name, std::vector<std::string>& to) {
    const auto value = take(name);
    if (!value) return;
    to.clear();
    if (value->string() != nullptr) return to.push_back(reveal(*value->string()));
    if (value->array() == nullptr) return wrong(name, "a list of texts");
    for (const auto& one : *value->array()) {
      if (one.string() == nullptr) return wrong(name, "a list of texts");
      to.push_back(reveal(*one.string()));
    }
  }
  void map(const char* name, std::map<std::string, std::string>& to) {
    const auto value = take(name);
    if (!value) return;
    if (value->object() == nullptr) return wrong(name, "a map of texts");
    for (const auto& [key, one] : *value->object()) {
      if (one.string() == nullptr) return wrong(name, "a map of texts");
      to[key] = reveal(*one.string());
    }
  }
  std::optional<core::Value> take(const char* name) {
    known_.emplace_back(name);
    const auto found = left_.find(name);
    if (found == left_.end()) return std::nullopt;
    core::Value value = std::move(found->second);
    left_.erase(found);
    return value;
  }
  void wrong(const char* name, const std::string& expected) {
    if (mistake_.empty()) mistake_ = where_ + "." + name + ": expected " + expected;
  }
  Status check() const {
    if (!mistake_.empty()) return fail(Code::invalid, mistake_);
    if (left_.empty()) return {};
    const std::string& unknown = left_.begin()->first;
    const std::string meant = config::nearest(unknown, known_);
    return fail(Code::invalid, where_ + ": unknown key '" + unknown + "'" +
                                   (meant.empty() ? std::string() : "; did you mean '" + meant + "'?"));
  }

 private:
  std::string reveal(const std::string& text) const {
    const auto secret = spec_.secrets.find(text);
    return secret == spec_.secrets.end() ? text : secret->second;
  }

  const config::SinkSpec& spec_;
  std::string where_;
  core::Value::Object left_;
  std::vector<std::string> known_;
  std::string mistake_;
};

void read_tls(Reader& reader, const config::SinkSpec& spec, sinks::NatsSettings& to) {
  const auto tls = reader.take("tls");
  if (!tls) return;
  if (tls->boolean() != nullptr) {
    to.tls = *tls->boolean();
    return;
  }
  if (tls->object() == nullptr) return reader.wrong("tls", "true, false, or a map with ca, cert, key");
  to.tls = true;
  Reader inner(spec, *tls, "sinks." + spec.name + ".tls");
  inner.text("ca", to.tls_ca);
  inner.text("cert", to.tls_cert);
  inner.text("key", to.tls_key);
  if (const Status ok = inner.check(); !ok) reader.wrong("tls", "ca, cert, key only (" + ok.error().message + ")");
}

void read_jetstream(Reader& reader, const config::SinkSpec& spec, sinks::NatsSettings& to) {
  const auto jetstream = reader.take("jetstream");
  if (!jetstream) return;
  if (jetstream->boolean() != nullptr) {
    to.jetstream = *jetstream->boolean();
    return;
  }
  if (jetstream->object() == nullptr) return reader.wrong("jetstream", "true, false, or a map with stream, domain …");
  Reader inner(spec, *jetstream, "sinks." + spec.name + ".jetstream");
  std::int64_t max_age = to.max_age.count(), window = to.duplicate_window.count();
  inner.text("stream", to.stream);
  inner.text("domain", to.domain);
  inner.flag("create", to.create_stream);
  inner.number("replicas", to.replicas, 1, 5);
  inner.number("max_age_s", max_age, 60, 10ll * 365 * 86'400);
  inner.number("duplicate_window_s", window, 1, 86'400);
  inner.millis("ack_wait_ms", to.ack_wait);
  to.max_age = std::chrono::seconds(max_age);
  to.duplicate_window = std::chrono::seconds(window);
  if (const Status ok = inner.check(); !ok) reader.wrong("jetstream", "known keys only (" + ok.error().message + ")");
}

Result<std::unique_ptr<core::Sink>> make_nats(Reader& reader, const config::SinkSpec& spec, asio::any_io_executor core,
                                              asio::any_io_executor io) {
  sinks::NatsSettings out;
  reader.texts("servers", out.servers);
  read_jetstream(reader, spec, out);
  read_tls(reader, spec, out);
  reader.flag("views", out.views);
  std::string format = "kind";
  reader.text("type_format", format);
  if (format != "kind" && format != "kind.changetype") reader.wrong("type_format", "kind or kind.changetype");
  out.kind_change_type = format == "kind.changetype";
  reader.millis("connect_timeout_ms", out.connect_timeout);
  reader.text("user", out.user);
  reader.text("password", out.password);
  reader.text("token", out.token);
  reader.text("credentials_file", out.credentials_file);
  reader.text("nkey", out.nkey_public);
  reader.text("nkey_seed_file", out.nkey_seed_file);
  DRIFTD_CHECK(reader.check());
  return sinks::open_nats(spec.name, std::move(out), std::move(core), std::move(io));
}

Result<std::unique_ptr<core::Sink>> make_webhook(Reader& reader, const config::SinkSpec& spec,
                                                 asio::any_io_executor core, const Clock& clock) {
  sinks::WebhookSettings out;
  std::vector<std::string> secrets;
  reader.text("url", out.url);
  reader.texts("secret", out.secrets);
  reader.texts("secrets", secrets);
  out.secrets.insert(out.secrets.end(), secrets.begin(), secrets.end());
  reader.flag("allow_http_loopback", out.allow_http_loopback);
  reader.texts("allow", out.allow);
  reader.map("headers", out.headers);
  reader.text("ca_file", out.ca_file);
  reader.millis("connect_timeout_ms", out.connect_timeout);
  reader.millis("total_timeout_ms", out.total_timeout);
  reader.number("max_in_flight", out.max_in_flight, 1, 256);
  DRIFTD_CHECK(reader.check());
  return sinks::open_webhook(spec.name, std::move(out), std::move(core), clock);
}

Result<std::unique_ptr<core::Sink>> make_file(Reader& reader, const config::SinkSpec& spec, asio::any_io_executor io) {
  sinks::FileSettings out;
  if (spec.type == "file") {
    reader.path("path", out.path);
    reader.number("rotate_bytes", out.rotate_bytes, 4096, 1ll << 40);
    reader.number("keep", out.keep, 0, 1000);
    if (out.path.empty()) reader.wrong("path", "the path of a file");
  }
  DRIFTD_CHECK(reader.check());
  return sinks::open_file(spec.name, std::move(out), std::move(io));
}

}  // namespace

Result<std::unique_ptr<core::Sink>> make_sink(const config::SinkSpec& spec, asio::any_io_executor core,
                                              asio::any_io_executor io, const Clock& clock) {
  DRIFTD_TRY(const core::Value settings, core::parse(spec.settings_json));
  Reader reader(spec, settings, "sinks." + spec.name);
  if (spec.type == "nats") return make_nats(reader, spec, std::move(core), std::move(io));
  if (spec.type == "webhook") return make_webhook(reader, spec, std::move(core), clock);
  if (spec.type == "file" || spec.type == "stdout") return make_file(reader, spec, std::move(io));
  if (spec.type == "notifications") {
    DRIFTD_CHECK(reader.check());
    return sinks::open_notifications({}, {});
  }
  return fail(Code::invalid, "sinks." + spec.name + ".type: unknown type '" + spec.type + "'");
}

}  // namespace driftd::app
