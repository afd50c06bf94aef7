// SPDX-License-Identifier: Apache-2.0
// `driftd audit export`: every line, oldest first, for an archive or a log collector.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <memory>

#include "base/instant.hpp"
#include "cli/command.hpp"
#include "core/audit_text.hpp"

namespace driftd::cli {
namespace {

struct ExportOptions {
  std::string format = "jsonl";
  std::string since, after;
  std::string sd_id = "driftd@32473";  // the number of the documentation, as the syslog sink has it
  bool follow = false;
};

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
  Export(const Context& context, ExportOptions options) : context_(context), options_(std::move(options)) {}

  int run() {
    const Client client = context_.client();
    const auto status = client.get("/v1/status");
    if (!status) return context_.fail(status.error());
    origin_ = {host_name(), text(*status, "name"), text(*status, "version")};
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
    // From the first line on that is not before it: a later one of a clock that was set back must not leave a gap.
    begun_ = begun_ || !is_before(text(line, "at"), options_.since);
    if (!begun_) return kOk;
    if (options_.format == "jsonl") {
      context_.out() << core::render(line) << "\n";
      return kOk;
    }
    const auto row = core::parse_audit_json(core::render(line));
    if (!row) return context_.fail(kFinding, "line " + text(line, "id") + ": " + row.error().message);
    context_.out() << (options_.format == "cef" ? core::render_cef(*row, origin_)
                                                : core::render_rfc5424(*row, origin_, options_.sd_id))
                   << "\n";
    return kOk;
  }

  const Context& context_;
  ExportOptions options_;
  core::AuditOrigin origin_;
  bool begun_ = false;
};

}  // namespace

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
  command->callback([&context, options] { context.exit = Export(context, *options).run(); });
}

}  // namespace driftd::cli
