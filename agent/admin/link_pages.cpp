// SPDX-License-Identifier: Apache-2.0
#include "admin/link_pages.hpp"

#include <algorithm>
#include <chrono>

#include "admin/percent.hpp"
#include "base/escape.hpp"
#include "base/log.hpp"
#include "core/link_token.hpp"
#include "core/presentable_text.hpp"

namespace driftd::admin {
namespace {

constexpr std::size_t kMaxName = 64, kMaxReason = 256;  // bytes of what a person types
constexpr std::size_t kMaxShownValue = 400;             // bytes
constexpr std::size_t kMaxChanges = 30;
constexpr const char* kUnknownLink = "unknown link";  // who asks with a token that no link has

constexpr std::string_view kLookAgain =
    "Look again with <code>driftd drifts --status pending</code>, or wait for the next notification.";

/// `body` is HTML.
LinkPage page(int status, std::string_view title, const std::string& body) {
  LinkPage out{status,
               "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
               "<meta name=\"viewport\" content=\"width=device-width\">"
               "<meta name=\"robots\" content=\"noindex\"><title>driftd: "};
  out.html +=
      html_text(title) + "</title></head><body>\n<h1>" + html_text(title) + "</h1>\n" + body + "\n</body></html>\n";
  return out;
}

LinkPage refusal(int status, std::string_view title, const std::string& why) {
  return page(status, title, "<p>" + why + "</p>\n<p>Nothing was decided now. " + std::string(kLookAgain) + "</p>");
}

LinkPage unknown_link() {
  return refusal(404, "This link is not known", "It is incomplete, or its message is older than its links live.");
}

LinkPage unavailable() {
  return page(503, "driftd cannot answer now",
              "<p>Nothing was decided. Open the link again in a minute; if this stays, look at "
              "<code>driftd status</code>.</p>");
}

std::string capital(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z') text.front() = static_cast<char>(text.front() - 32);
  return text;
}

std::string shown(const core::Change& change, const std::optional<std::string>& value) {
  if (!value) return "(absent)";
  return change.redacted ? "[REDACTED]" : core::presentable_text(*value);
}

std::string drift_text(const core::DriftRow& row) {
  const core::Drift& drift = row.drift;
  std::string out = "<p>Backend <b>" + html_text(escaped(row.backend)) + "</b>, <b>" +
                    html_text(escaped(core::render(drift.resource))) + "</b> was " +
                    std::string(core::render(drift.operation)) + ".</p>\n<ul>\n";
  for (std::size_t i = 0; i < std::min(drift.changes.size(), kMaxChanges); ++i) {
    const core::Change& change = drift.changes[i];
    const auto [before, now] =
        around_difference(shown(change, change.old_value), shown(change, change.new_value), kMaxShownValue);
    const bool itself = change.path.empty() || change.path == core::kIdentityPath;
    out += "<li>" + std::string(itself ? "the resource" : "<code>" + html_text(escaped(change.path)) + "</code>") +
           " changed from <code>" + html_text(escaped(before)) + "</code> to <code>" + html_text(escaped(now)) +
           "</code></li>\n";
  }
  if (drift.changes.size() > kMaxChanges) {
    out += "<li>and " + std::to_string(drift.changes.size() - kMaxChanges) + " more: <code>driftd drifts --drift " +
           html_text(drift.id) + "</code></li>\n";
  }
  return out + "</ul>";
}

std::string meaning_of(const std::string& action) {
  if (action == "approve") return "The new value becomes the accepted one.";
  if (action == "reject") return "The difference stays open, and somebody is expected to put the former value back.";
  if (action == "ignore") return "The new value is left as it is, without being accepted.";
  return "You look after it for 15 minutes, and everybody else sees that you do.";
}

LinkPage question(const core::DecisionLink& link, const core::DriftRow& row, const std::string& token) {
  const bool claim = link.action == "claim";
  const std::string verb = html_text(capital(link.action));
  return page(200, capital(link.action) + "?",
              drift_text(row) + "\n<p>" + meaning_of(link.action) +
                  "</p>\n<form method=\"post\" action=\".\">\n<input type=\"hidden\" name=\"token\" value=\"" +
                  html_text(token) + "\">\n<p><label>Your name" + (claim ? "" : " (optional)") +
                  ": <input name=\"name\" maxlength=\"64\"" + (claim ? " required" : "") +
                  "></label></p>\n<p><label>Reason (optional): <input name=\"reason\" maxlength=\"256\"></label></p>\n"
                  "<p><button type=\"submit\">" +
                  verb + "</button></p>\n</form>");
}

std::string actor_of(const core::DecisionLink& link, const std::string& name) {
  return std::string(core::kLinkActor) + link.event_id + ", sent to " + link.sink +
         (name.empty() ? "" : " (typed: " + name + ")");
}

/// What the person typed, on one line and visible.
std::string typed(const std::map<std::string, std::string>& form, const std::string& field, std::size_t bytes) {
  const auto found = form.find(field);
  if (found == form.end()) return {};
  std::string out = escaped(found->second);
  out.erase(0, std::min(out.find_first_not_of(' '), out.size()));
  while (out.ends_with(' ')) out.pop_back();
  return std::string(front(out, bytes));
}

core::Decision::Verb verb_of(const std::string& action) {
  using Verb = core::Decision::Verb;
  if (action == "approve") return Verb::approve;
  return action == "reject" ? Verb::reject : Verb::ignore;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Result<std::map<std::string, std::string>> parse_form(std::string_view body) {
  std::map<std::string, std::string> out;
  while (!body.empty()) {
    const auto end = std::min(body.find('&'), body.size());
    const std::string_view field = body.substr(0, end);
    const auto equals = std::min(field.find('='), field.size());
    DRIFTD_TRY(std::string name, percent_decoded(field.substr(0, equals), true));
    DRIFTD_TRY(std::string value, percent_decoded(field.substr(std::min(equals + 1, field.size())), true));
    out.emplace(valid_utf8(std::move(name)), valid_utf8(std::move(value)));
    body.remove_prefix(std::min(end + 1, body.size()));
  }
  return out;
}

Task<LinkPages::Found> LinkPages::find(std::string token) {
  Found out;
  const std::string hash = core::link_hash(token);
  const Result<std::optional<core::DecisionLink>> none = std::optional<core::DecisionLink>();
  auto link = none;
  if (!hash.empty()) link = co_await deps_.links.find_link(hash);
  out.refusal = link ? unknown_link() : unavailable();
  if (!link || !*link) co_return out;
  out.link = std::move(**link);
  if (out.link.used_ns != 0) {
    out.refusal = refusal(410, "This link was used already",
                          "It was used at " + render_time(out.link.used_ns) + ", and works once only.");
    co_return out;
  }
  if (out.link.expires_ns <= deps_.clock.wall()) {
    out.refusal = refusal(410, "This link has expired", "It was valid until " + render_time(out.link.expires_ns) + ".");
    co_return out;
  }
  core::DriftFilter filter;
  filter.all = true;
  filter.limit = 2;
  filter.drift = out.link.drift_id;
  auto rows = co_await deps_.reader.drifts(std::move(filter));
  out.refusal = unavailable();
  if (!rows) co_return out;
  const auto same = [&](const core::DriftRow& row) { return row.drift.id == out.link.drift_id; };
  const auto row = std::find_if(rows->begin(), rows->end(), same);
  if (row == rows->end() || row->drift.status != core::DriftStatus::pending) {
    const std::string state = row == rows->end() ? "no longer known" : std::string(core::render(row->drift.status));
    const std::string by = row == rows->end() || row->drift.actor.empty() ? "" : " (" + row->drift.actor + ")";
    out.refusal = refusal(410, "There is nothing to decide any more",
                          "Drift " + html_text(out.link.drift_id) + " is " + state + html_text(escaped(by)) + ".");
    co_return out;
  }
  if (!deps_.control.binding(row->drift).starts_with(out.link.digest)) {
    out.refusal = refusal(409, "The value has changed since",
                          "The message showed another value than drift " + html_text(out.link.drift_id) + " has now.");
    co_return out;
  }
  out.row = std::move(*row);
  out.usable = true;
  co_return out;
}

Task<LinkPage> LinkPages::show(std::string token) {
  const std::string copy = token;
  const Found found = co_await find(std::move(token));
  if (!found.usable) co_return found.refusal;
  co_return question(found.link, found.row, copy);
}

Task<LinkPage> LinkPages::decide(std::string body) {
  const auto parsed = parse_form(body);
  if (!parsed) co_return refusal(400, "This form cannot be read", html_text(parsed.error().message) + ".");
  const auto& form = *parsed;
  const auto token = form.find("token");
  std::string given = token == form.end() ? std::string() : token->second;
  const Found found = co_await find(std::move(given));
  const std::string name = typed(form, "name", kMaxName);
  if (!found.usable) {
    Error why{Code::denied, "the link was used, has expired, or its value moved"};
    if (found.refusal.status == 503) co_return found.refusal;  // nothing was refused: the link may be used again
    if (found.link.hash.empty()) co_await audit_unknown();
    if (!found.link.hash.empty()) co_await audit_failure(found.link, name, std::move(why));
    co_return found.refusal;
  }
  if (found.link.action == "claim" && name.empty()) {
    co_return page(400, "Your name is missing",
                   "<p>A claim tells others who looks after the drift. Nothing was done; go back and give a name.</p>");
  }
  std::string reason = typed(form, "reason", kMaxReason);
  const auto done = co_await carry_out(found.link, name, std::move(reason));
  if (!done) {
    co_await audit_failure(found.link, name, done.error());
    const int status = done.error().code == Code::unavailable || done.error().code == Code::internal ? 503 : 409;
    co_return refusal(status, "This could not be done", html_text(escaped(done.error().message)) + ".");
  }
  const bool waits = found.link.action == "approve" && done->status == core::DriftStatus::pending;
  const std::string what = found.link.action == "claim" ? "It is claimed for 15 minutes."
                           : waits ? "Your approval is recorded. The policy asks for another person's, too."
                                   : "The drift is now " + std::string(core::render(done->status)) + ".";
  co_return page(200, "Done",
                 "<p>" + what + "</p>\n<p>To take it back: <code>driftd " +
                     std::string(found.link.action == "claim" ? "release " : "undo ") + html_text(done->id) +
                     "</code></p>");
}

/// The link is marked as used in the transaction that decides.
Task<Result<core::Drift>> LinkPages::carry_out(core::DecisionLink link, std::string name, std::string reason) {
  constexpr Nanos kClaimed = 15ll * 60 * 1'000'000'000;
  const Nanos now = deps_.clock.wall();
  core::Caller caller;
  if (!name.empty()) caller.claimed = std::string(core::kTyped) + name;
  if (link.action == "claim") {
    core::Claim claim;
    claim.actor = actor_of(link, name);
    claim.caller = caller;
    claim.reason = std::move(reason);
    claim.at_ns = now;
    claim.until_ns = now + kClaimed;
    claim.link = link.hash;
    auto claimed = co_await deps_.control.claim(link.drift_id, std::move(claim));
    co_return claimed;
  }
  core::Decision decision;
  decision.verb = verb_of(link.action);
  decision.actor = actor_of(link, name);
  decision.caller = caller;
  decision.reason = std::move(reason);
  decision.digest = link.digest;
  decision.at_ns = now;
  decision.link = link.hash;
  auto decided = co_await deps_.control.decide(link.drift_id, std::move(decision));
  co_return decided;
}

Task<void> LinkPages::audit_failure(core::DecisionLink link, std::string name, Error error) {
  core::AuditEntry line;
  line.at_ns = deps_.clock.wall();
  line.actor = actor_of(link, name);
  if (!name.empty()) line.caller.claimed = std::string(core::kTyped) + name;
  line.verb = link.action;
  line.subject = link.drift_id;
  line.digest = link.digest;
  line.outcome = escaped(core::shortened(std::string(render(error.code)) + ": " + error.message, 1'024));
  const Status written = co_await deps_.control.audit(std::move(line));
  if (!written) log::room("admin").error("a refused link is not in the audit log: {}", written.error().message);
}

/// Somebody who tries tokens must not be able to fill the audit log.
Task<void> LinkPages::audit_unknown() {
  const auto unwritten = denials_.admit({"", kUnknownLink}, core::Denials::Clock::now());
  if (!unwritten) co_return;
  core::AuditEntry line;
  line.at_ns = deps_.clock.wall();
  line.actor = kUnknownLink;
  line.verb = "refused";
  line.subject = "a decision by a link";
  line.outcome = "not_found: no such link";
  if (*unwritten > 0) line.reason = "and " + std::to_string(*unwritten) + " more since the last line";
  const Status written = co_await deps_.control.audit(std::move(line));
  if (!written) log::room("admin").error("a refused link is not in the audit log: {}", written.error().message);
}

Task<void> LinkPages::audit_unwritten_denials(bool all) {
  auto lines = denials_.unwritten_lines(core::Denials::Clock::now(), deps_.clock.wall(), all);
  for (auto& line : lines) {
    const Status written = co_await deps_.control.audit(std::move(line));
    if (!written) log::room("admin").error("refused links are not in the audit log: {}", written.error().message);
  }
}

}  // namespace driftd::admin
