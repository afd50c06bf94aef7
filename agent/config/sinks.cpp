// SPDX-License-Identifier: Apache-2.0
// Reads `sinks:` into the settings of each type.
#include "config/chat.hpp"
#include "config/kafka_sink.hpp"
#include "config/parts.hpp"
#include "config/plugin_sink.hpp"
#include "config/secrets.hpp"

namespace driftd::config {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::vector<std::string> kTypes = {"nats", "kafka", "webhook", "notifications", "file", "stdout", "plugin"};
constexpr milliseconds kDay{86'400'000};
constexpr std::int64_t kMaxBatchBytes = 16 << 20;

/// Reads a sink's keys: plain ones from the section, those that may be secret references from the resolved settings.
class SinkSection {
 public:
  SinkSection(Section section, const Settings& settings) : plain(std::move(section)), settings_(settings) {}

  std::string text(std::string_view key) {
    const Node* node = plain.find(key);
    if (node == nullptr) return "";
    if (node->kind != Node::Kind::scalar) plain.wrong(key, *node, "text");
    return node->kind == Node::Kind::scalar ? resolved(settings_.with_tokens.find(key), node->text) : "";
  }
  std::vector<std::string> texts(std::string_view key) {
    std::vector<std::string> out;
    const auto nodes = plain.items(key);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i]->kind != Node::Kind::scalar) plain.wrong(key, *nodes[i], "text");
      const auto* list = settings_.with_tokens.find(key)->array();
      if (nodes[i]->kind == Node::Kind::scalar) out.push_back(resolved(&(*list)[i], nodes[i]->text));
    }
    return out;
  }
  std::map<std::string, std::string> text_map(std::string_view key) {
    std::map<std::string, std::string> out;
    const Node* node = plain.find(key);
    if (node != nullptr && node->kind != Node::Kind::map) plain.wrong(key, *node, "a map of names to text");
    if (node == nullptr || node->kind != Node::Kind::map) return out;
    for (const auto& member : node->members) {
      if (member.value.kind != Node::Kind::scalar) plain.wrong(key, member.value, "text");
      out[member.key] = resolved(settings_.with_tokens.find(key)->find(member.key), member.value.text);
    }
    return out;
  }
  /// Returns the text of a key in the section that `outer` names, which may be a secret reference.
  std::string nested_text(Section& section, std::string_view outer, std::string_view key) {
    const Node* node = section.find(key);
    if (node == nullptr) return "";
    if (node->kind != Node::Kind::scalar) section.wrong(key, *node, "text");
    const core::Value* map = settings_.with_tokens.find(outer);
    return node->kind == Node::Kind::scalar ? resolved(map == nullptr ? nullptr : map->find(key), node->text) : "";
  }
  seconds whole_seconds(Section& section, std::string_view key, seconds fallback) {
    return std::chrono::duration_cast<seconds>(section.duration(key, fallback, milliseconds(1'000), 3650 * kDay));
  }

  Section plain;

 private:
  std::string resolved(const core::Value* value, const std::string& as_written) const {
    const std::string* text = value == nullptr ? nullptr : value->string();
    const auto found = text == nullptr ? settings_.secrets.end() : settings_.secrets.find(*text);
    return found == settings_.secrets.end() ? as_written : found->second;
  }

  const Settings& settings_;
};

void read_jetstream(SinkSection& sink, sinks::NatsSettings& out) {
  const Node* node = sink.plain.find("jetstream");
  if (node != nullptr && node->kind == Node::Kind::scalar) {
    out.jetstream = sink.plain.boolean("jetstream", true);
    return;
  }
  Section jetstream = sink.plain.section("jetstream");
  out.stream = jetstream.text("stream", out.stream);
  out.create_stream = jetstream.boolean("create", out.create_stream);
  out.domain = jetstream.text("domain");
  out.replicas = static_cast<int>(jetstream.integer("replicas", out.replicas, 1, 5));
  out.max_age = sink.whole_seconds(jetstream, "max_age", out.max_age);
  out.duplicate_window = sink.whole_seconds(jetstream, "duplicate_window", out.duplicate_window);
  jetstream.close();
}

void read_tls(SinkSection& sink, sinks::NatsSettings& out) {
  const Node* node = sink.plain.find("tls");
  if (node != nullptr && node->kind == Node::Kind::scalar) {
    out.tls = sink.plain.boolean("tls", false);
    return;
  }
  Section tls = sink.plain.section("tls");
  out.tls = tls.present();
  out.tls_ca = tls.text("ca");
  out.tls_cert = tls.text("cert");
  out.tls_key = tls.text("key");
  if (out.tls_cert.empty() != out.tls_key.empty()) {
    tls.report().error(tls.at(), tls.title() + " has only one of 'cert' and 'key'", "both or none");
  }
  tls.close();
}

/// Returns HOST of `scheme://user:password@HOST:port/path`. Empty if there is none.
std::string host_of(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  if (const auto at = url.rfind('@'); at != std::string_view::npos) url.remove_prefix(at + 1);
  if (url.starts_with('[')) return std::string(url.substr(1, url.find(']') - 1));
  return std::string(url.substr(0, url.find_first_of(":/?#")));
}

bool is_loopback(std::string_view host) {
  return host.empty() || host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") ||
         host == "::1";
}

/// Warns if a password or token would be sent in clear text. Signatures (credentials_file, nkey) reveal no secret.
void warn_of_clear_text(SinkSection& sink, const sinks::NatsSettings& settings) {
  if (settings.tls) return;
  const bool sent = !settings.user.empty() || !settings.password.empty() || !settings.token.empty();
  for (const auto& server : settings.servers) {
    if (looks_like_reference(server) || server.starts_with("tls://") || is_loopback(host_of(server))) continue;
    if (!sent && server.find('@') == std::string::npos) continue;
    return sink.plain.report().warn(sink.plain.at("servers"),
                                    sink.plain.title() + " sends its password or token to " + host_of(server) +
                                        " in clear text: everybody on the way can read it",
                                    "tls: true, or credentials_file or nkey, which send no secret");
  }
}

sinks::NatsSettings read_nats(SinkSection& sink) {
  sinks::NatsSettings out;
  const auto servers = sink.texts("servers");
  if (sink.plain.find("servers") != nullptr) out.servers = servers;
  if (out.servers.empty()) {
    sink.plain.report().error(sink.plain.at("servers"), sink.plain.title() + " has no servers",
                              "[\"nats://HOST:4222\"]");
  }
  read_jetstream(sink, out);
  read_tls(sink, out);
  out.views = sink.plain.boolean("views", out.views);
  out.kind_change_type =
      sink.plain.choice("type_format", "subject", {"subject", "kind.changetype"}) == "kind.changetype";
  out.ack_wait = sink.plain.duration("ack_wait", out.ack_wait, milliseconds(100), milliseconds(300'000));
  out.connect_timeout =
      sink.plain.duration("connect_timeout", out.connect_timeout, milliseconds(100), milliseconds(60'000));
  out.user = sink.text("user");
  out.password = sink.text("password");
  out.token = sink.text("token");
  out.credentials_file = sink.plain.text("credentials_file");
  out.nkey_public = sink.plain.text("nkey_public");
  out.nkey_seed_file = sink.plain.text("nkey_seed_file");
  warn_of_clear_text(sink, out);
  return out;
}

void check_url(SinkSection& sink, const sinks::WebhookSettings& settings) {
  const bool allowed = settings.allow_http_loopback && settings.url.starts_with("http://");
  if (allowed && !is_loopback(host_of(settings.url))) {
    sink.plain.report().warn(sink.plain.at("url"),
                             "'url' of " + sink.plain.title() + " is plain http to " + host_of(settings.url) +
                                 ", which is not loopback by its name: if it is not by its address, nothing is sent",
                             "https://HOST/PATH");
  }
  if (settings.url.starts_with("https://") || allowed) return;
  const bool absent = sink.plain.find("url") == nullptr;
  sink.plain.report().error(
      sink.plain.at("url"),
      absent ? sink.plain.title() + " has no 'url'" : "'url' of " + sink.plain.title() + " is not https",
      "https://HOST/PATH", "", absent ? "" : "plain http goes to loopback only, with allow_http_loopback: true");
}

void read_mode(SinkSection& sink, sinks::WebhookSettings& out) {
  using Mode = sinks::WebhookMode;
  const std::string mode = sink.plain.choice("mode", "structured", {"structured", "binary", "batch"});
  if (mode == "binary") out.mode = Mode::binary;
  if (mode == "batch") out.mode = Mode::batch;
  Section batch = sink.plain.section("batch");
  if (batch.present() && out.mode != Mode::batch) {
    batch.report().error(batch.at(), batch.title() + " is only used with 'mode: batch'",
                         "mode: batch, if the receiver takes application/cloudevents-batch+json", "mode: " + mode);
  }
  const auto events = batch.integer("max_events", static_cast<std::int64_t>(out.batch.events), 2, 256);
  const auto bytes = batch.bytes("max_bytes", static_cast<std::int64_t>(out.batch.bytes), 1 << 16);
  if (bytes > kMaxBatchBytes) {
    batch.report().error(batch.at("max_bytes"), "'max_bytes' of " + batch.title() + " is too large", "at most 16MiB");
  }
  out.batch = {static_cast<std::size_t>(events), static_cast<std::size_t>(bytes)};
  batch.close();
}

/// Messages for people instead of events. Slack and Teams check no signature: the URL itself is the secret.
void read_format(SinkSection& sink, sinks::WebhookSettings& out) {
  using Format = sinks::ChatFormat;
  out.chat = read_chat(sink.plain);
  if (out.chat.format != Format::none && sink.plain.find("mode") != nullptr) {
    sink.plain.report().error(sink.plain.at("mode"), "'mode' of " + sink.plain.title() + " is not used with a 'format'",
                              "one of the two: 'mode' sends events, 'format' messages");
  }
  const bool signs = out.chat.format == Format::none || out.chat.format == Format::generic;
  if (out.secrets.empty() && sink.plain.find("secret") == nullptr && signs) {
    sink.plain.report().error(sink.plain.at(), sink.plain.title() + " has no 'secret': receivers could not trust it",
                              "secret: \"${file:…}\", or secrets: [NEW, OLD] while it is rotated");
  }
  const Node* url = sink.plain.find("url");
  if (!signs && url != nullptr && !looks_like_reference(url->text)) {
    sink.plain.report().warn(sink.plain.at("url"),
                             "'url' of " + sink.plain.title() + " stands here in clear text: whoever reads it can post",
                             "url: \"${file:…}\" or \"${env:…}\"");
  }
}

void read_client_tls(SinkSection& sink, sinks::WebhookSettings& out) {
  out.tls.ca = sink.plain.text("ca_file");
  out.tls.cert = sink.plain.text("cert_file");
  out.tls.key = sink.plain.text("key_file");
  if (out.tls.cert.empty() != out.tls.key.empty()) {
    sink.plain.report().error(sink.plain.at(out.tls.cert.empty() ? "key_file" : "cert_file"),
                              sink.plain.title() + " has only one of 'cert_file' and 'key_file'", "both or none");
  }
}

void read_proxy(SinkSection& sink, sinks::WebhookSettings& out) {
  out.proxy = sink.text("proxy");
  out.proxy_trusted = sink.plain.boolean("proxy_trusted", false);
  if (!out.proxy.empty() && !out.proxy_trusted) {
    sink.plain.report().error(
        sink.plain.at("proxy"),
        sink.plain.title() + " has a 'proxy', which chooses the address: private networks are no longer refused",
        "proxy_trusted: true, if the proxy refuses them");
  }
  if (out.proxy.empty() && out.proxy_trusted) {
    sink.plain.report().error(sink.plain.at("proxy_trusted"), sink.plain.title() + " has no 'proxy' to trust",
                              "proxy: http://HOST:PORT, as that of the environment is not used");
  }
}

sinks::WebhookSettings read_webhook(SinkSection& sink, bool resolved) {
  sinks::WebhookSettings out;
  out.url = sink.text("url");
  out.allow_http_loopback = sink.plain.boolean("allow_http_loopback", false);
  if (resolved || !sink.plain.find("url") || !looks_like_reference(sink.plain.find("url")->text)) check_url(sink, out);
  out.secrets = sink.texts("secrets");
  if (sink.plain.find("secret") != nullptr) out.secrets.insert(out.secrets.begin(), sink.text("secret"));
  read_format(sink, out);
  out.allow = sink.plain.texts("allow");
  out.headers = sink.text_map("headers");
  read_mode(sink, out);
  read_client_tls(sink, out);
  read_proxy(sink, out);
  out.connect_timeout =
      sink.plain.duration("connect_timeout", out.connect_timeout, milliseconds(100), milliseconds(60'000));
  out.total_timeout = sink.plain.duration("total_timeout", out.total_timeout, milliseconds(100), milliseconds(300'000));
  out.max_in_flight = static_cast<int>(sink.plain.integer("max_in_flight", out.max_in_flight, 1, 256));
  return out;
}

sinks::FileSettings read_file(SinkSection& sink) {
  sinks::FileSettings out;
  out.path = sink.plain.required_text("path", "the file that gets one JSON line per event");
  out.rotate_bytes = sink.plain.bytes("rotate", out.rotate_bytes, 4096);
  out.keep = static_cast<int>(sink.plain.integer("keep", out.keep, 0, 10'000));
  return out;
}

SinkSettings read_settings(SinkSection& sink, const std::string& type, bool resolved, const Settings& settings) {
  if (type == "plugin") return read_plugin_sink(sink.plain, settings);
  if (type == "nats") return read_nats(sink);
  if (type == "kafka") {
    return read_kafka(sink.plain, [&sink](Section& section, std::string_view outer, std::string_view key) {
      return sink.nested_text(section, outer, key);
    });
  }
  if (type == "webhook") return read_webhook(sink, resolved);
  if (type == "file") return read_file(sink);
  if (type == "stdout") return sinks::FileSettings{};
  return sinks::NotificationsSettings{};
}

void read_sink(Report& report, const Node::Member& member, const LoadOptions& options, Config& config) {
  const std::string title = "sink '" + member.key + "'";
  const Node* type = member.value.find("type");
  const std::string path = "sinks.*{" + (type == nullptr ? "" : type->text) + "}";
  Settings settings =
      SettingsReader(report, options, "sink/" + member.key).read(member.value, {"type", "drop_pending"});
  SinkSpec spec;
  spec.name = member.key;
  spec.at = member.value.at;
  SinkSection sink(Section(report, &member.value, path, title), settings);
  if (type == nullptr) report.error(member.value.at, title + " has no 'type'", one_of(kTypes));
  spec.type = sink.plain.choice("type", "", kTypes);
  spec.drop_pending = sink.plain.boolean("drop_pending", false);
  if (!spec.type.empty() && spec.type != "notifications") {  // whoever decides there must see the values
    spec.digests_only = sink.plain.choice("events", "whole", {"whole", "digests_only"}) == "digests_only";
  }
  if (!spec.type.empty()) {
    spec.settings = read_settings(sink, spec.type, options.resolve_secrets, settings);
    sink.plain.close();
  }
  spec.settings_json = core::render(settings.with_tokens);
  spec.secrets = std::move(settings.secrets);
  config.sinks.push_back(std::move(spec));
}

}  // namespace

void read_sinks(Section& root, const LoadOptions& options, Config& config) {
  const Node* sinks = root.find("sinks");
  if (sinks == nullptr) return;
  if (sinks->kind != Node::Kind::map) return root.wrong("sinks", *sinks, "a map of names to sinks");
  for (const auto& member : sinks->members) {
    if (const std::string fault = core::invalid_name_reason(member.key); !fault.empty()) {
      root.report().error(member.at, "a sink cannot be named '" + member.key + "': " + fault, "letters, digits, - _ .");
    }
    if (member.value.kind == Node::Kind::map) {
      read_sink(root.report(), member, options, config);
    } else {
      root.report().error(member.value.at, "sink '" + member.key + "' has the wrong type", "a map with a 'type'",
                          describe(member.value));
    }
  }
}

}  // namespace driftd::config
