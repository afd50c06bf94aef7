// SPDX-License-Identifier: Apache-2.0
#include "core/audit_text.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/escape.hpp"

namespace driftd::core {
namespace {

Value number(std::int64_t value) { return Value::Number{std::to_string(value)}; }
Value time(Nanos at) { return at <= 0 ? Value() : Value(render_time(at)); }

std::string text_of(const Value& object, const char* name) {
  const Value* found = object.find(name);
  return found != nullptr && found->string() != nullptr ? *found->string() : std::string();
}

std::int64_t number_of(const Value& object, const char* name, std::int64_t fallback) {
  const Value* found = object.find(name);
  if (found == nullptr || found->number() == nullptr) return fallback;
  return std::strtoll(found->number()->token.c_str(), nullptr, 10);
}

using Fields = std::vector<std::pair<const char*, std::string>>;

/// Without what is empty. An id or a hash in it identifies the line in the agent's own log.
Fields fields_of(const AuditRow& row) {
  const bool process = row.caller.uid >= 0;
  Fields all = {{"line", std::to_string(row.id)},
                {"verb", row.verb},
                {"outcome", row.outcome},
                {"actor", row.actor},
                {"uid", process ? std::to_string(row.caller.uid) : ""},
                {"gid", process ? std::to_string(row.caller.gid) : ""},
                {"pid", process ? std::to_string(row.caller.pid) : ""},
                {"claimed", row.caller.claimed},
                {"subject", row.subject},
                {"backend", row.backend},
                {"resource", row.resource},
                {"digest", row.digest},
                {"changes", row.changes},
                {"reason", row.reason},
                {"expires", row.expires_ns ? render_time(*row.expires_ns) : ""},
                {"request", row.request},
                {"hash", row.hash}};
  std::erase_if(all, [](const auto& field) { return field.second.empty(); });
  return all;
}

bool was_refused(const AuditRow& row) { return row.outcome.starts_with("denied") || row.verb == "refused"; }

/// Puts a backslash in front of each of `special`.
std::string with_backslashes(const std::string& text, std::string_view special) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// A header of CEF is one line; `|` and `\` are escaped.
std::string cef_header(const std::string& text) { return with_backslashes(escaped(text), "\\|"); }

/// A value of CEF's extension: `\`, `=` and line ends are escaped, other control characters are shown.
std::string cef_value(const std::string& text, std::size_t bytes) {
  std::string out;
  std::string run;
  const auto end_run = [&] {
    out += with_backslashes(escaped(run), "\\=");
    run.clear();
  };
  for (const char c : shortened(text, bytes)) {
    if (c != '\n' && c != '\r') {
      run += c;
      continue;
    }
    end_run();
    out += c == '\n' ? "\\n" : "\\r";
  }
  end_run();
  return out;
}

/// A name of a header of RFC 5424: printable ASCII without spaces. `-` if it is empty.
std::string syslog_name(const std::string& text, std::size_t bytes) {
  std::string out;
  for (const char c : text) {
    if (out.size() == bytes) break;
    out += c > ' ' && c < 0x7f ? c : '_';
  }
  return out.empty() ? "-" : out;
}

/// The name of structured data may not have the characters that end it, either.
std::string sd_name(const std::string& text) {
  std::string out = syslog_name(text, 32);
  for (char& c : out) {
    if (c == '=' || c == ']' || c == '"') c = '_';
  }
  return out;
}

/// `2026-11-26T21:07:12.000123Z`: RFC 5424 allows six digits.
std::string syslog_time(Nanos at) {
  if (at <= 0) return "-";
  char micros[8];
  std::snprintf(micros, sizeof micros, "%06d", static_cast<int>(at / 1'000 % 1'000'000));
  return render_time(at).substr(0, 20) + micros + "Z";
}

}  // namespace

Value audit_json(const AuditRow& row) {
  const bool process = row.caller.uid >= 0;
  auto changes = row.changes.empty() ? Result<Value>(Value(Value::Array())) : parse(row.changes);
  return Value::Object{{"id", number(row.id)},
                       {"at", time(row.at_ns)},
                       {"at_ns", number(row.at_ns)},
                       {"actor", row.actor},
                       {"uid", process ? number(row.caller.uid) : Value()},
                       {"gid", process ? number(row.caller.gid) : Value()},
                       {"pid", process ? number(row.caller.pid) : Value()},
                       {"claimed", row.caller.claimed},
                       {"verb", row.verb},
                       {"outcome", row.outcome},
                       {"subject", row.subject},
                       {"backend", row.backend},
                       {"resource", row.resource},
                       {"digest", row.digest},
                       {"changes", changes ? std::move(*changes) : Value(row.changes)},
                       {"reason", row.reason},
                       {"expires", time(row.expires_ns.value_or(0))},
                       {"expires_ns", row.expires_ns ? number(*row.expires_ns) : Value()},
                       {"request", row.request},
                       {"hash", row.hash}};
}

Result<AuditRow> parse_audit_json(std::string_view line) {
  DRIFTD_TRY(const Value value, parse(line));
  AuditRow out;
  if (value.object() != nullptr) {
    out.id = number_of(value, "id", 0);
    out.at_ns = number_of(value, "at_ns", 0);
    out.actor = text_of(value, "actor");
    out.caller = {number_of(value, "uid", -1), number_of(value, "gid", -1), number_of(value, "pid", 0),
                  text_of(value, "claimed")};
    out.verb = text_of(value, "verb");
    out.outcome = text_of(value, "outcome");
    out.subject = text_of(value, "subject");
    out.backend = text_of(value, "backend");
    out.resource = text_of(value, "resource");
    out.digest = text_of(value, "digest");
    out.reason = text_of(value, "reason");
    out.request = text_of(value, "request");
    out.hash = text_of(value, "hash");
    const Value* changes = value.find("changes");
    const bool some = changes != nullptr && changes->array() != nullptr && !changes->array()->empty();
    out.changes = some ? render(*changes) : text_of(value, "changes");
    if (const Value* expires = value.find("expires_ns"); expires != nullptr && !expires->is_null()) {
      out.expires_ns = number_of(value, "expires_ns", 0);
    }
  }
  if (render(audit_json(out)) == line) return out;
  return fail(Code::invalid, "it is not a line that `driftd audit export --format jsonl` wrote: " +
                                 escaped(shortened(std::string(line), 120)));
}

std::string render_cef(const AuditRow& row, const AuditOrigin& origin) {
  const char* severity = was_refused(row) ? "7" : row.outcome.empty() ? "3" : "5";
  std::string out = "CEF:0|driftd|driftd|" + cef_header(origin.version) + "|" + cef_header(shortened(row.verb, 100)) +
                    "|" + cef_header(shortened(row.verb, 200)) + "|" + severity + "|";
  bool first = true;
  const auto put = [&out, &first](const char* key, const std::string& value, std::size_t bytes) {
    if (value.empty()) return;
    if (!std::exchange(first, false)) out += ' ';  // `|` in front of it may be the end of a value
    out += std::string(key) + "=" + cef_value(value, bytes);
  };
  const auto labelled = [&put](const std::string& key, const char* label, const std::string& value) {
    if (value.empty()) return;
    put((key + "Label").c_str(), label, 100);
    put(key.c_str(), value, 3'900);
  };
  put("rt", std::to_string(row.at_ns / 1'000'000), 20);
  put("dvchost", origin.host, 100);
  put("deviceExternalId", origin.agent, 200);
  put("externalId", std::to_string(row.id), 40);
  put("act", row.verb, 60);
  put("outcome", row.outcome.empty() ? "success" : "failure", 60);
  put("suser", row.actor, 1'000);
  if (row.caller.uid >= 0) {
    put("suid", std::to_string(row.caller.uid), 40);
    put("spid", std::to_string(row.caller.pid), 40);
  }
  put("reason", row.reason, 1'000);
  put("msg", row.outcome.empty() ? row.subject : row.subject + ": " + row.outcome, 1'000);
  labelled("cs1", "backend", row.backend);
  labelled("cs2", "resource", row.resource);
  labelled("cs3", "digest", row.digest);
  labelled("cs4", "changes", row.changes);
  labelled("cs5", "hash", row.hash);
  labelled("cs6", "claimed", row.caller.claimed);
  return out;
}

std::string render_rfc5424(const AuditRow& row, const AuditOrigin& origin, const std::string& sd_id) {
  constexpr int kLogAudit = 13;  // RFC 5424, table 1
  constexpr int kWarning = 4, kNotice = 5;
  const int priority = kLogAudit * 8 + (row.outcome.empty() ? kNotice : kWarning);
  std::string out = "<" + std::to_string(priority) + ">1 " + syslog_time(row.at_ns) + " " +
                    syslog_name(origin.host, 255) + " driftd - " + syslog_name(row.verb, 32) + " [" + sd_name(sd_id);
  for (const auto& [name, value] : fields_of(row)) {
    out += std::string(" ") + name + "=\"" + with_backslashes(escaped(value), "\\\"]") + "\"";
  }
  const std::string done = row.outcome.empty() ? std::string() : ": " + row.outcome;
  return out + "] \xEF\xBB\xBF" + escaped(row.actor + " " + row.verb + " " + row.subject + done);
}

}  // namespace driftd::core
