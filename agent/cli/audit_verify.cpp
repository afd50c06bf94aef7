// SPDX-License-Identifier: Apache-2.0
// `driftd audit verify`: of the running agent, of the file of a store, or of an export.
#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <optional>

#include "base/escape.hpp"
#include "cli/command.hpp"
#include "core/audit_text.hpp"

namespace driftd::cli {
namespace {

constexpr std::chrono::seconds kLongCheck{600};

int show_proof(const Context& context, const core::AuditProof& proof) {
  if (context.json()) {
    context.out() << json_text(core::Value(core::Value::Object{
                         {"whole", core::Value(proof.whole)},
                         {"broken", proof.broken},
                         {"unchecked", proof.unchecked},
                         {"lines", core::Value::Number{std::to_string(proof.lines)}},
                         {"head", core::Value::Object{{"id", core::Value::Number{std::to_string(proof.head_id)}},
                                                      {"hash", proof.head_hash}}}}))
                  << "\n";
    return proof.whole ? kOk : kFinding;
  }
  context.out() << (proof.whole ? "whole: " : "BROKEN: " + printable(proof.broken) + "; ") << proof.lines
                << " lines, from behind line " << proof.anchor_id << " to line " << proof.head_id << " with hash "
                << printable(proof.head_hash) << "\n";
  if (proof.unchained > 0) context.out() << proof.unchained << " older lines have no hash\n";
  if (!proof.unchecked.empty()) context.out() << "the anchor was not compared: " << printable(proof.unchecked) << "\n";
  context.out()
      << "Compare the last line with an `audit_anchor` event or the agent's log (`audit:` …), kept on another "
         "machine.\n";
  return proof.whole ? kOk : kFinding;
}

core::AuditProof proof_of(const core::Value& answer) {
  const core::Value anchor = member(answer, "anchor"), head = member(answer, "head");
  core::AuditProof out;
  out.whole = flag(answer, "whole");
  out.broken = text(answer, "broken");
  out.unchecked = text(answer, "unchecked");
  out.lines = number(answer, "lines");
  out.unchained = number(answer, "unchained");
  out.anchor_id = number(anchor, "id");
  out.anchor_hash = text(anchor, "hash");
  out.head_id = number(head, "id");
  out.head_hash = text(head, "hash");
  return out;
}

/// Checks the lines of an export one by one. Its first line has nothing before it that could be compared, so what it
/// proves is that the lines follow each other; an anchor proves that they are those that were written.
Result<core::AuditProof> verify_export(std::istream& lines, std::optional<core::AuditLink> anchor) {
  core::AuditChain chain(std::move(anchor));
  core::AuditProof out;
  std::string line;
  while (out.broken.empty() && std::getline(lines, line)) {
    auto row = core::parse_audit_json(line);
    if (!row) {
      out.broken = "behind line " + std::to_string(chain.at().id) + ": " + row.error().message;
      break;
    }
    if (row->hash.empty()) {  // from before the chain began
      ++out.unchained;
      continue;
    }
    if (out.lines == 0 && row->id != 1) {
      out.anchor_id = row->id - 1;
      out.broken = chain.begin({row->id, row->hash});  // the hash before it is not in the export
    } else {
      out.broken = chain.check(*row);
    }
    if (out.broken.empty()) ++out.lines;
  }
  if (lines.bad()) return fail(Code::unavailable, "cannot read the export");
  out.head_id = chain.at().id;
  out.head_hash = chain.at().hash;
  if (out.broken.empty()) out.broken = chain.end(out.unchecked);
  out.whole = out.broken.empty();
  return out;
}

Result<core::AuditProof> verify_file(const Context& context, const std::string& file, const std::string& anchor) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return fail(Code::not_found, "cannot read " + printable(file));
  if (in.peek() != '{') {
    in.close();
    if (!context.hooks.verify_audit) return fail(Code::invalid, "this binary holds no agent; use driftd");
    return context.hooks.verify_audit(file, anchor);
  }
  std::optional<core::AuditLink> link;
  if (!anchor.empty()) {
    DRIFTD_TRY(link, core::parse_audit_link(anchor));
  }
  return verify_export(in, std::move(link));
}

}  // namespace

int verify_audit(const Context& context, const std::string& file, const std::string& anchor) {
  if (file.empty()) {
    const auto answer = context.client().get("/v1/audit/verify", {{"anchor", anchor}}, kLongCheck);
    if (!answer) return context.fail(answer.error());
    return show_proof(context, proof_of(*answer));
  }
  const auto proof = verify_file(context, file, anchor);
  if (proof) return show_proof(context, *proof);
  return context.fail(proof.error().code == Code::invalid ? kUsage : kUnreachable, proof.error().message);
}

void add_audit_verify(CLI::App& audit, Context& context) {
  auto* command = audit.add_subcommand("verify", "check that no line was changed, removed or moved; exit 1 if one was");
  auto file = std::make_shared<std::string>();
  auto anchor = std::make_shared<std::string>();
  command->add_option("FILE", *file, "store.db, a backup or a JSON lines export; without it the agent checks its own");
  command->add_option("--anchor", *anchor, "ID:HASH of an `audit_anchor` event: that line must still be there");
  command->callback([&context, file, anchor] { context.exit = verify_audit(context, *file, *anchor); });
}

}  // namespace driftd::cli
