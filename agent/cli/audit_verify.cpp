// SPDX-License-Identifier: Apache-2.0
// `driftd audit verify`: of the running agent, of the file of a store, or of an export.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "base/escape.hpp"
#include "cli/command.hpp"
#include "core/audit_text.hpp"

namespace driftd::cli {
namespace {

constexpr std::chrono::seconds kLongCheck{600};

/// Whoever gives an anchor wants to know whether its line is still there.
int exit_of(const core::AuditProof& proof) { return proof.whole && proof.unchecked.empty() ? kOk : kFinding; }

int show_proof(const Context& context, const core::AuditProof& proof) {
  if (context.json()) {
    context.out() << json_text(core::Value(core::Value::Object{
                         {"whole", core::Value(proof.whole)},
                         {"broken", proof.broken},
                         {"unchecked", proof.unchecked},
                         {"untested", proof.untested},
                         {"lines", core::Value::Number{std::to_string(proof.lines)}},
                         {"head", core::Value::Object{{"id", core::Value::Number{std::to_string(proof.head_id)}},
                                                      {"hash", proof.head_hash}}}}))
                  << "\n";
    return exit_of(proof);
  }
  context.out() << (proof.whole ? "whole: " : "BROKEN: " + printable(proof.broken) + "; ") << proof.lines
                << " lines, from behind line " << proof.anchor_id << " to line " << proof.head_id << " with hash "
                << printable(proof.head_hash) << "\n";
  if (proof.unchained > 0) context.out() << proof.unchained << " older lines have no hash\n";
  if (!proof.untested.empty()) context.out() << printable(proof.untested) << "\n";
  if (!proof.unchecked.empty()) context.out() << "the anchor was not compared: " << printable(proof.unchecked) << "\n";
  context.out()
      << "Compare the last line with an `audit_anchor` event or the agent's log (`audit:` …), kept on another "
         "machine.\n";
  return exit_of(proof);
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

/// Checks the lines of an export one by one, from its first one on.
class ExportCheck {
 public:
  explicit ExportCheck(std::optional<core::AuditLink> anchor) : anchor_(anchor), chain_(std::move(anchor)) {}
  /// Returns how the export is broken at this line. Empty if it is not.
  std::string take(const core::AuditRow& row) {
    if (row.hash.empty()) return take_unchained(row.id);
    if (std::exchange(begun_, true)) return count(chain_.check(row));
    return begin(row);
  }
  core::AuditProof end(std::string broken) {
    out_.head_id = chain_.at().id;
    out_.head_hash = chain_.at().hash;
    out_.broken = broken.empty() ? chain_.end(out_.unchecked) : std::move(broken);
    out_.whole = out_.broken.empty();
    return std::move(out_);
  }
  std::int64_t at() const { return std::max(chain_.at().id, unchained_id_); }

 private:
  /// A line from before the chain began. They stand in front of it, without a gap between them and the chain.
  std::string take_unchained(std::int64_t id) {
    if (begun_) return "line " + std::to_string(id) + " has no hash, and stands behind the first one that has";
    if (id <= unchained_id_)
      return "line " + std::to_string(id) + " stands behind line " + std::to_string(unchained_id_);
    unchained_id_ = id;
    ++out_.unchained;
    return {};
  }
  /// The hash before the first line is known for the whole chain, and if the anchor gives it. Else the line is taken as
  /// it is, and the chain begins behind it.
  std::string begin(const core::AuditRow& row) {
    const bool after_anchor = anchor_ && anchor_->id == row.id - 1;
    if (out_.unchained == 0 && row.id != 1 && !after_anchor) {
      out_.anchor_id = row.id;
      out_.anchor_hash = row.hash;
      out_.untested = "line " + std::to_string(row.id) +
                      " itself was not checked, because the one before it is not in the export: export from an earlier "
                      "line, or give the one before it as --anchor";
      return chain_.begin({row.id, row.hash});
    }
    core::AuditLink before{unchained_id_, {}};
    if (after_anchor && out_.unchained == 0) before = *anchor_;
    out_.anchor_id = before.id;
    out_.anchor_hash = before.hash;
    if (auto why = chain_.begin(std::move(before)); !why.empty()) return why;
    return count(chain_.check(row));
  }
  std::string count(std::string broken) {
    if (broken.empty()) ++out_.lines;
    return broken;
  }

  std::optional<core::AuditLink> anchor_;
  core::AuditChain chain_;
  core::AuditProof out_;
  bool begun_ = false;
  std::int64_t unchained_id_ = 0;  ///< the last line without a hash
};

Result<core::AuditProof> verify_export(std::istream& lines, std::optional<core::AuditLink> anchor) {
  ExportCheck check(std::move(anchor));
  std::string line, broken;
  while (broken.empty() && std::getline(lines, line)) {
    const auto row = core::parse_audit_json(line);
    broken = row ? check.take(*row) : "behind line " + std::to_string(check.at()) + ": " + row.error().message;
  }
  if (lines.bad()) return fail(Code::unavailable, "cannot read the export");
  return check.end(std::move(broken));
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
