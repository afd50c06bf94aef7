// SPDX-License-Identifier: Apache-2.0
#include "kube/exec_credential.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "driftd/sdk/types.hpp"
#include "http/http.hpp"
#include "kube/json_access.hpp"

namespace driftd::kube {
namespace {

constexpr const char* kWhere = "settings.token: the ExecCredential: ";
constexpr std::array kVersions = {"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"};

[[noreturn]] void bad(const std::string& text) { throw sdk::Failure(DRIFTD_UNAUTHENTICATED, kWhere + text); }

bool has_break(std::string_view text) { return text.find_first_of("\r\n") != std::string_view::npos; }

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

/// A member that is a text, moved out so that no copy stays; empty: it is absent.
std::string text_member(json& status, const char* name) {
  const auto found = status.find(name);
  if (found == status.end() || found->is_null()) return {};
  if (!found->is_string()) bad(std::string("status.") + name + ": expected a string, found " + found->type_name());
  return std::move(found->get_ref<std::string&>());
}

void require_form(const json& document) {
  if (!document.is_object()) bad("no valid JSON object");
  const json& kind = find(document, {"kind"});
  if (kind != json("ExecCredential")) {
    bad("kind: expected ExecCredential" +
        (kind.is_string() ? ", found '" + kind.get<std::string>().substr(0, 40) + "'" : std::string()));
  }
  const std::string version = text(document, {"apiVersion"});
  if (std::find(kVersions.begin(), kVersions.end(), version) == kVersions.end()) {
    bad("apiVersion: expected client.authentication.k8s.io/v1 or v1beta1, found '" + version.substr(0, 60) + "'");
  }
  if (!find(document, {"status"}).is_object()) bad("no status: the program answered its question and no credential");
}

void take_certificate(json& status, Credential& out) {
  out.certificate_pem = text_member(status, "clientCertificateData");
  out.key_pem = text_member(status, "clientKeyData");
  if (out.certificate_pem.empty() != out.key_pem.empty()) {
    bad(out.key_pem.empty() ? "status.clientCertificateData without clientKeyData; expected both or none"
                            : "status.clientKeyData without clientCertificateData; expected both or none");
  }
  for (const auto& [name, pem] :
       {std::pair{"clientCertificateData", &out.certificate_pem}, {"clientKeyData", &out.key_pem}}) {
    const bool is_pem = pem->empty() || pem->find("-----BEGIN ") != std::string::npos;
    if (!is_pem) bad(std::string("status.") + name + ": expected PEM, which begins with -----BEGIN");
  }
}

Credential from_document(std::string_view text) {
  json document = json::parse(text, nullptr, false);
  require_form(document);
  json& status = document.at("status");
  Credential out;
  out.token = text_member(status, "token");
  if (has_break(out.token)) bad("status.token holds a line break; expected one line");
  take_certificate(status, out);
  if (out.token.empty() && out.certificate_pem.empty()) bad("status has neither a token nor clientCertificateData");
  out.expires = text_member(status, "expirationTimestamp");
  if (out.expires.empty()) return out;
  out.expires_ns = parse_time(out.expires);
  if (!out.expires_ns) bad("status.expirationTimestamp: expected a time of RFC 3339, 2026-01-31T12:00:00Z");
  return out;
}

/// Parses exactly this many digits from `from` on; nullopt if there are other characters.
std::optional<int> number(std::string_view text, std::size_t from, std::size_t digits) {
  int out = 0;
  if (from + digits > text.size()) return std::nullopt;
  for (std::size_t i = from; i < from + digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    out = out * 10 + (text[i] - '0');
  }
  return out;
}

/// `Z`, `+01:00` as minutes.
std::optional<int> zone(std::string_view text) {
  if (text == "Z" || text == "z") return 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  const auto hours = number(text, 1, 2), minutes = number(text, 4, 2);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  return (text[0] == '-' ? -1 : 1) * (*hours * 60 + *minutes);
}

}  // namespace

Credential::~Credential() {
  http::wipe(token);
  http::wipe(key_pem);
}

Credential parse_credential(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('{')) return from_document(text);
  if (has_break(text))
    throw sdk::Failure(DRIFTD_UNAUTHENTICATED,
                       "settings.token holds a line break; expected a token of one line, or an ExecCredential");
  Credential out;
  out.token = text;
  return out;
}

std::optional<std::int64_t> parse_time(std::string_view text) {
  const auto year = number(text, 0, 4), month = number(text, 5, 2), day = number(text, 8, 2),
             hour = number(text, 11, 2), minute = number(text, 14, 2), second = number(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const bool marks =
      text[4] == '-' && text[7] == '-' && (text[10] == 'T' || text[10] == 't') && text[13] == ':' && text[16] == ':';
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!marks || !date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  std::size_t rest = 19;
  if (rest < text.size() && text[rest] == '.') {  // fractions of a second are ignored
    const std::size_t from = ++rest;
    while (rest < text.size() && text[rest] >= '0' && text[rest] <= '9') ++rest;
    if (rest == from) return std::nullopt;
  }
  const auto offset = zone(text.substr(rest));
  if (!offset) return std::nullopt;
  const auto at = std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(*hour) +
                  std::chrono::minutes(*minute - *offset) + std::chrono::seconds(*second);
  using std::chrono::nanoseconds, std::chrono::floor;
  const std::chrono::seconds last = floor<std::chrono::seconds>(nanoseconds::max()),
                             first = floor<std::chrono::seconds>(nanoseconds::min());
  if (at > last) return nanoseconds::max().count();  // after 2262: as good as never
  return at <= first ? nanoseconds::min().count() : nanoseconds(at).count();
}

}  // namespace driftd::kube
