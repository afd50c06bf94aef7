// SPDX-License-Identifier: Apache-2.0
// The table behind disclosure.hpp: which names and values of free-form maps are shown. Everything else is withheld.
#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cctype>

#include "base/secret_text.hpp"
#include "core/disclosure.hpp"

namespace driftd::core {
namespace {

constexpr std::string_view kDigits = "0123456789";

/// Returns `log_level` for `logLevel`, `LOG-LEVEL` and `log.level`.
std::string plain_name(std::string_view name) {
  std::string out;
  bool lower_before = false;
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isupper(letter) != 0 && lower_before) out += '_';
    out += std::isalnum(letter) != 0 ? static_cast<char>(std::tolower(letter)) : '_';
    lower_before = std::islower(letter) != 0 || std::isdigit(letter) != 0;
  }
  return out;
}

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

constexpr auto kSuspicious = std::to_array<std::string_view>(
    {"pass",       "pwd",     "psk",     "secret", "token", "key",     "auth", "cred",       "conn",
     "dsn",        "jwt",     "private", "salt",   "sign",  "seed",    "hmac", "kubeconfig", "kube_config",
     "raw_config", "webhook", "cookie",  "nonce",  "otp",   "license", "cert", "userdata"});

/// Names that contain one of the words above, but whose values are not secrets.
constexpr auto kNamesOfThings = std::to_array<std::string_view>(
    {"kms_key_id", "kms_key_arn", "key_name", "secret_name", "secret_arn", "partition_key", "hash_key", "range_key",
     "sort_key", "author", "authority", "max_tokens", "design", "token_ttl", "auth_mode", "auth_type", "auth_method",
     "key_id"});

constexpr auto kNames = std::to_array<std::string_view>(
    {"api_version", "app",          "app_name",   "application", "arn",        "availability_zone",
     "bucket",      "category",     "chart",      "cidr",        "cidr_block", "class",
     "cluster",     "cluster_name", "component",  "cost_center", "country",    "cpu",
     "database",    "datacenter",   "db_name",    "description", "dns",        "domain",
     "driver",      "effect",       "email",      "engine",      "env",        "environment",
     "etag",        "family",       "finalizers", "format",      "fqdn",       "group",
     "host",        "hostname",     "hosts",      "id",          "image",      "image_tag",
     "instance",    "kind",         "labels",     "lang",        "level",      "locale",
     "location",    "log_format",   "log_level",  "managed_by",  "memory",     "mode",
     "name",        "namespace",    "network",    "node",        "operator",   "os",
     "owner",       "partition",    "path",       "phase",       "platform",   "policy",
     "port",        "ports",        "profile",    "project",     "protocol",   "provider",
     "region",      "registry",     "repository", "resource",    "role",       "runtime",
     "schedule",    "service",      "size",       "sku",         "stage",      "state",
     "status",      "storage",      "strategy",   "subnet",      "tag",        "team",
     "tier",        "type"});

constexpr auto kEndings = std::to_array<std::string_view>(
    {"_id",     "_ids",    "_arn",    "_arns",    "_name",  "_names",  "_type",   "_types",  "_version",
     "_region", "_zone",   "_zones",  "_host",    "_hosts", "_port",   "_ports",  "_addr",   "_size",
     "_count",  "_level",  "_mode",   "_class",   "_cidr",  "_block",  "_blocks", "_ttl",    "_format",
     "_group",  "_groups", "_domain", "_status",  "_state", "_date",   "_time",   "_at",     "_bytes",
     "_limit",  "_env",    "_image",  "_enabled", "_kind",  "_engine", "_policy", "_timeout"});

constexpr auto kWords = std::to_array<std::string_view>(
    {"true",         "false",        "yes",         "no",        "on",           "off",           "none",
     "null",         "enabled",      "disabled",    "auto",      "default",      "debug",         "info",
     "warn",         "warning",      "error",       "trace",     "fatal",        "notice",        "always",
     "never",        "ifnotpresent", "onfailure",   "tcp",       "udp",          "sctp",          "http",
     "https",        "http2",        "grpc",        "tls",       "ssl",          "plaintext",     "sasl_ssl",
     "require",      "prefer",       "verify-full", "verify-ca", "production",   "prod",          "staging",
     "stage",        "development",  "dev",         "test",      "qa",           "utc",           "local",
     "json",         "text",         "yaml",        "logfmt",    "xml",          "cluster",       "standalone",
     "sentinel",     "primary",      "replica",     "leader",    "follower",     "readonly",      "readwrite",
     "read",         "write",        "clusterip",   "nodeport",  "loadbalancer", "rollingupdate", "recreate",
     "orderedready", "parallel",     "retain",      "delete",    "allow",        "deny",          "block",
     "permissive",   "strict",       "public",      "active",    "inactive",     "available",     "ready",
     "running",      "stopped",      "pending",     "succeeded", "failed",       "unknown",       "standard",
     "premium",      "basic",        "linux",       "amd64",     "arm64"});

constexpr auto kUnits = std::to_array<std::string_view>(
    {"",  "%", "ns", "us", "ms", "s",  "m",  "h",  "d", "w",  "y",  "min", "sec", "hr", "k",   "K",   "M",   "G",  "T",
     "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "B", "kB", "KB", "MB",  "GB",  "TB", "KiB", "MiB", "GiB", "TiB"});

/// Returns true for `30s`, `512Mi`, `1.5`, `10%`, `1h30m`: at most three numbers, each with its unit.
bool is_quantity(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  for (int group = 0; group < 3 && !text.empty(); ++group) {
    const auto number = std::min(text.find_first_not_of("0123456789."), text.size());
    if (number == 0 || number > 10 || text.front() == '.') return false;
    text.remove_prefix(number);
    const auto unit = std::min(text.find_first_of(kDigits), text.size());
    if (!is_one_of(kUnits, text.substr(0, unit))) return false;
    text.remove_prefix(unit);
    if (text.empty()) return true;
  }
  return false;
}

/// Returns true for `v1.2.3-rc1`, `2026-11-22T10:00:00Z`, `10.0.0.0/16`, `10.0.0.1:6379`.
bool is_version_or_time(std::string_view text) {
  if (text.size() > 40) return false;
  if (text.starts_with('v')) text.remove_prefix(1);
  if (text.empty() || kDigits.find(text.front()) == text.npos) return false;
  const auto letters = std::count_if(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
  const bool separated = text.find_first_of(".-:/") != text.npos && text.find_first_of(".-:/") <= 4;
  return separated && letters <= 4 &&
         text.find_first_not_of("0123456789.:-+/abcdefghijklmnopqrstuvwxyzTZ") == text.npos;
}

/// Returns true if a part of a path is long and has letters and digits, as a token has.
bool looks_random(std::string_view part) {
  const auto digits = std::count_if(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return part.size() >= 16 && digits >= 2 && static_cast<std::size_t>(digits) < part.size();
}

bool is_plain_path(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
  if (text.size() > 256 || text.find_first_not_of(kLetters) != text.npos) return false;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('/'));
    if (looks_random(part)) return false;
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return true;
}

/// Returns true for a host of the cluster or this machine, with or without a port.
bool is_near_host(std::string_view text) {
  std::string_view host = text.substr(0, text.find(':'));
  if (host.size() < text.size() && text.find_first_not_of(kDigits, host.size() + 1) != text.npos) return false;
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789.-";
  return host == "localhost" ||
         ((host.ends_with(".svc") || host.ends_with(".local")) && host.find_first_not_of(kLetters) == host.npos);
}

/// Returns true for `http://host:80/path` without user-info, query or fragment, and without a part that may be a token.
bool is_plain_url(std::string_view text) {
  const auto scheme = text.find("://");
  if (scheme == text.npos || scheme > 12 || without_credentials(text) != text) return false;
  const std::string_view rest = text.substr(scheme + 3);
  const std::string_view host = rest.substr(0, rest.find('/'));
  const auto port = host.rfind(':');
  const bool numbered = port == host.npos || host.find_first_not_of(kDigits, port + 1) == host.npos;
  return numbered && is_plain_path(host.substr(0, port)) && is_plain_path(rest.substr(host.size()));
}

bool is_suspicious(const std::string& plain) {
  if (is_one_of(kNamesOfThings, plain)) return false;
  return std::any_of(kSuspicious.begin(), kSuspicious.end(),
                     [&](std::string_view word) { return plain.find(word) != std::string::npos; });
}

bool is_harmless(const std::string& plain) {
  if (is_one_of(kNames, plain) || is_one_of(kNamesOfThings, plain)) return true;
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view end) { return plain.ends_with(end); });
}

struct NameTraits {
  bool suspicious, harmless;
};

/// The same names come with each record, so each thread keeps what it found out about the last some thousand.
NameTraits traits_of(std::string_view name) {
  constexpr std::size_t kKept = 4'096, kLongestKept = 128;
  thread_local boost::unordered_flat_map<std::string, NameTraits> known;
  thread_local std::string key;
  key.assign(name);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  const std::string plain = plain_name(name);
  const NameTraits out{is_suspicious(plain), is_harmless(plain)};
  if (known.size() >= kKept) known.clear();
  if (name.size() <= kLongestKept) known.emplace(key, out);
  return out;
}

}  // namespace

bool suspicious_name(std::string_view name) { return traits_of(name).suspicious; }

bool harmless_name(std::string_view name) { return traits_of(name).harmless; }

bool harmless_value(std::string_view text) {
  std::string lower(text.substr(0, 32));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (text.empty() || (text.size() < 32 && is_one_of(kWords, lower))) return true;
  if (text.front() == '/') return is_plain_path(text);
  return is_quantity(text) || is_version_or_time(text) || is_near_host(text) || is_plain_url(text);
}

}  // namespace driftd::core
