// SPDX-License-Identifier: Apache-2.0
#include "check/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/escape.hpp"
#include "check/registry.hpp"
#include "ipc/text.hpp"

namespace driftd::check {
namespace {

constexpr std::size_t kMaxTextBytes = 1u << 16;

double seconds(const Outcome& outcome) { return static_cast<double>(outcome.took.count()) / 1000; }

std::size_t count(const Run& run, Ending ending) {
  return static_cast<std::size_t>(std::count_if(run.checks.begin(), run.checks.end(),
                                                [&](const Finished& f) { return f.outcome.ending == ending; }));
}

std::size_t count(const Run& run, Ending ending, Level level) {
  return static_cast<std::size_t>(std::count_if(run.checks.begin(), run.checks.end(), [&](const Finished& f) {
    return f.outcome.ending == ending && f.check.level == level;
  }));
}

std::string one_line(std::string_view text) {
  std::string out = safe(text);
  std::replace(out.begin(), out.end(), '\n', ' ');
  std::replace(out.begin(), out.end(), '\t', ' ');
  return out;
}

std::string indented(std::string_view text) {
  std::string out = "    ";
  for (const char c : safe(text)) {
    out += c;
    if (c == '\n') out += "    ";
  }
  while (!out.empty() && (out.back() == ' ' || out.back() == '\n')) out.pop_back();
  return out + '\n';
}

std::string sums(const Run& run) {
  const std::size_t must = count(run, Ending::broken, Level::must);
  return fmt::format("{} checks: {} passed, {} broken ({} must, {} should), {} not made, {} not applicable; seed {}",
                     run.checks.size(), count(run, Ending::passed), count(run, Ending::broken), must,
                     count(run, Ending::broken, Level::should), count(run, Ending::not_made),
                     count(run, Ending::not_applicable), run.seed);
}

std::string id_of(Ending ending) {
  std::string out = render(ending);
  std::replace(out.begin(), out.end(), ' ', '_');
  return out;
}

using Row = std::vector<std::string>;

std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : safe(text)) {
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
      case '\n':
        out += "&#10;";
        break;  // keeps line breaks inside attributes
      default:
        out += c;
    }
  }
  return out;
}

std::string junit_case(const Finished& finished) {
  const auto& [check, outcome] = finished;
  const std::string id = check.id;
  const std::string group = group_of(check);
  std::string out = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\">\n", xml(group),
                                xml(id.substr(group.size() + 1)), seconds(outcome));
  if (outcome.ending == Ending::broken && check.level == Level::must) {
    out += fmt::format("      <failure type=\"must\" message=\"{}\">{}</failure>\n", xml(one_line(outcome.text)),
                       xml(outcome.text));
  } else if (outcome.ending != Ending::passed) {
    const std::string head = outcome.ending == Ending::broken ? "should, broken" : render(outcome.ending);
    out += fmt::format("      <skipped message=\"{}: {}\"/>\n", head, xml(one_line(outcome.text)));
  }
  if (!outcome.child_stderr.empty())
    out += fmt::format("      <system-err>{}</system-err>\n", xml(outcome.child_stderr));
  return out + "    </testcase>\n";
}

nlohmann::ordered_json listed(const Check& check) {
  return {{"id", check.id}, {"level", render(check.level)}, {"title", check.title}, {"limit_s", check.limit.count()}};
}

}  // namespace

std::string safe(std::string_view text) {
  const std::string whole = ipc::printable(text, kMaxTextBytes);
  std::string out;
  for (std::string_view rest = whole; !rest.empty();) {
    const std::string_view one = rest.substr(0, utf8_sequence(rest));
    const auto c = static_cast<unsigned>(code_point(one));
    const bool in_xml = c != 0xfffe && c != 0xffff;
    const bool shown = c == '\n' || c == '\t' || (in_xml && !is_control_character(one));
    out += shown ? std::string(one) : c < 0x80 ? fmt::format("\\x{:02x}", c) : fmt::format("\\u{{{:x}}}", c);
    rest.remove_prefix(one.size());
  }
  return out;
}

int exit_code(const Run& run) {
  if (count(run, Ending::broken, Level::must) > 0) return 1;
  return count(run, Ending::not_made, Level::must) > 0 ? 3 : 0;
}

std::string render_text(const Run& run) {
  std::string out;
  for (const auto& [check, outcome] : run.checks) {
    if (outcome.ending != Ending::broken) continue;
    out += fmt::format("{} ({}): {}\n{}", check.id, render(check.level), one_line(check.title), indented(outcome.text));
    if (!outcome.child_stderr.empty()) out += "  stderr:\n" + indented(outcome.child_stderr);
    out += '\n';
  }
  for (const auto& note : run.notes) out += "note: " + one_line(note) + '\n';
  std::vector<Row> rows{{"check", "level", "result", "time", "reason"}};
  for (const auto& [check, outcome] : run.checks) {
    rows.push_back({check.id, render(check.level), render(outcome.ending), fmt::format("{:.2f}s", seconds(outcome)),
                    one_line(outcome.text)});
  }
  return out + table(rows) + '\n' + sums(run) + '\n';
}

std::string render_json(const Run& run) {
  nlohmann::ordered_json out{
      {"driftd_check", 1}, {"file", safe(run.file)}, {"seed", run.seed}, {"notes", nlohmann::ordered_json::array()}};
  for (const auto& note : run.notes) out["notes"].push_back(safe(note));
  out["checks"] = nlohmann::ordered_json::array();
  for (const auto& [check, outcome] : run.checks) {
    out["checks"].push_back({{"id", check.id},
                             {"level", render(check.level)},
                             {"result", id_of(outcome.ending)},
                             {"seconds", seconds(outcome)},
                             {"reason", safe(outcome.text)},
                             {"stderr", safe(outcome.child_stderr)}});
  }
  for (const auto ending : {Ending::passed, Ending::broken, Ending::not_made, Ending::not_applicable}) {
    out["sums"][id_of(ending)] = count(run, ending);
  }
  out["sums"]["broken_must"] = count(run, Ending::broken, Level::must);
  out["exit"] = exit_code(run);
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::string render_junit(const Run& run) {
  const std::size_t failures = count(run, Ending::broken, Level::must);
  double time = 0;
  for (const auto& finished : run.checks) time += seconds(finished.outcome);
  const std::string numbers =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{:.3f}\"", run.checks.size(),
                  failures, run.checks.size() - failures - count(run, Ending::passed), time);
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n  <testsuite name=\"driftd-check {1}\" {0}>\n"
      "    <properties>\n      <property name=\"seed\" value=\"{2}\"/>\n",
      numbers, xml(run.file), run.seed);
  for (const auto& note : run.notes) out += fmt::format("      <property name=\"note\" value=\"{}\"/>\n", xml(note));
  out += "    </properties>\n";
  for (const auto& finished : run.checks) out += junit_case(finished);
  return out + "  </testsuite>\n</testsuites>\n";
}

std::string list_text(const std::vector<Check>& checks) {
  std::vector<Row> rows{{"check", "level", "holds when"}};
  for (const auto& check : checks) rows.push_back({check.id, render(check.level), check.title});
  return table(rows);
}

std::string list_json(const std::vector<Check>& checks) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& check : checks) out.push_back(listed(check));
  return out.dump(2) + '\n';
}

}  // namespace driftd::check
