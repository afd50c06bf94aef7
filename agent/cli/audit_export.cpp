// SPDX-License-Identifier: Apache-2.0
// `driftd audit export`: every line, oldest first, for an archive or a log collector.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <memory>

#include "base/instant.hpp"
#include "cli/audit_export.hpp"

namespace driftd::cli {
namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

/// Compares moments, not texts: `…:23.000Z` is not before `…:23Z`. Empty is before nothing.
bool is_before(const std::string& at, const std::string& since) {
  const auto when = parse_nanos(at), first = parse_nanos(since);
  return when && first && *when < *first;
}

/// Writes lines in one format, from the first one on that is not before `since`.
class Export {
 public:
  Export(const Context& context, ExportOptions options)
      : context_(context),
        options_(std::move(options)),
        since_(options_.since) {}

  int run() {
    const Client client = context_.client();
    auto origin = audit_origin(client);
    if (!origin) return context_.fail(origin.error());
    origin_ = std::move(*origin);
    Query query{{"after", options_.after.empty() ? "0" : options_.after}, {"limit", "1000"}};
    for (;;) {
      const auto answer = client.get("/v1/audit", query);
      if (!answer) return context_.fail(answer.error());
      const auto lines = list(*answer, "audit");
      for (const auto& line : lines) {
        if (const int exit = write(line); exit != kOk) return exit;
        query["after"] = text(line, "id");
      }
      context_.out().flush();
      if (!context_.out())
        return context_.fail(kUnreachable, "the output takes nothing more; export from --after " + query["after"]);
      if (!lines.empty()) continue;
      if (!options_.follow) return kOk;
      query["wait"] = "20";
    }
  }

 private:
  int write(const core::Value& line) {
    if (!since_.has(line)) return kOk;
    const auto rendered = render_line(line, options_, origin_);
    if (!rendered) return context_.fail(rendered.error());
    context_.out() << *rendered << "\n";
    return kOk;
  }

  const Context& context_;
  ExportOptions options_;
  core::AuditOrigin origin_;
  SinceTime since_;
};

}  // namespace

bool SinceTime::has(const core::Value& line) {
  begun_ = begun_ || !is_before(text(line, "at"), since_);
  return begun_;
}

Outcome<std::string> render_line(const core::Value& line, const ExportOptions& options,
                                 const core::AuditOrigin& origin) {
  if (options.format == "jsonl") return core::render(line);
  const auto row = core::parse_audit_json(core::render(line));
  if (!row) return tl::unexpected(Failure{kFinding, "line " + text(line, "id") + ": " + row.error().message});
  return options.format == "cef" ? core::render_cef(*row, origin) : core::render_rfc5424(*row, origin, options.sd_id);
}

Outcome<core::AuditOrigin> audit_origin(const Client& client) {
  const auto status = client.get("/v1/status");
  if (!status) return tl::unexpected(status.error());
  return core::AuditOrigin{host_name(), text(*status, "name"), text(*status, "version")};
}

void add_audit_export(CLI::App& audit, Context& context) {
  auto* command = audit.add_subcommand("export", "write all lines, oldest first, for an archive or a log collector");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("--format", options->format, "jsonl (can be verified again), cef or syslog (RFC 5424)")
      ->check(CLI::IsMember({"jsonl", "cef", "syslog"}));
  command
      ->add_option("--since", options->since, "from the first line of this time or later on, as 2026-11-26T21:00:00Z")
      ->check([](const std::string& given) {
        return parse_nanos(given) ? std::string() : "'" + given + "' is not a time such as 2026-11-26T21:00:00Z";
      });
  command->add_option("--after", options->after, "only lines behind this number");
  command->add_option("--sd-id", options->sd_id, "with --format syslog: the id of the structured data");
  command->add_flag("-f,--follow", options->follow, "go on with further lines as they are written");
  command->add_option("--to", options->to,
                      "with --format syslog: send to this server, tls://HOST[:6514], not to stdout");
  command->add_option("--ca", options->ca, "with --to: authorities that are trusted, in PEM; default: the system's");
  command->add_option("--cert", options->cert, "with --to: our certificate, in PEM; with --key");
  command->add_option("--key", options->key, "with --to: the key of --cert");
  command->add_option("--state", options->state,
                      "with --to: the file that remembers the last line that the server has");
  command->callback([&context, options] {
    const bool only_to =
        !options->ca.empty() || !options->cert.empty() || !options->key.empty() || !options->state.empty();
    if (!options->to.empty())
      context.exit = forward_audit(context, *options);
    else if (only_to)
      context.exit = context.fail(kUsage, "--ca, --cert, --key and --state need --to tls://HOST[:PORT]");
    else
      context.exit = Export(context, *options).run();
  });
}

}  // namespace driftd::cli
