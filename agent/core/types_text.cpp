// SPDX-License-Identifier: Apache-2.0
// Texts with an inner form: versions, timestamps, PEM, properties, YAML.
#include <algorithm>
#include <memory>
#include <openssl/pem.h>
#include <optional>
#include <sstream>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/digest.hpp"
#include "base/instant.hpp"
#include "core/types.hpp"

namespace driftd::core::types {
namespace {

constexpr std::size_t kMostYaml = 1u << 20;
constexpr int kMostYamlDepth = 128;
constexpr int kMostYamlNodes = 100'000;  ///< aliases are expanded: a bomb ends here

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\f'; }

/// Joins lines that end in an odd number of backslashes; drops comments and blank lines.
std::vector<std::string> logical_lines(std::string_view text) {
  std::vector<std::string> out;
  bool joining = false;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of("\r\n"), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    if (!joining && (line.empty() || line.front() == '#' || line.front() == '!')) continue;
    const auto last = line.find_last_not_of('\\');
    const bool continued = (line.size() - (last == std::string_view::npos ? 0 : last + 1)) % 2 == 1;
    if (continued) line.remove_suffix(1);
    if (joining) {
      out.back() += line;
    } else {
      out.emplace_back(line);
    }
    joining = continued;
  }
  return out;
}

/// Escapes of java.util.Properties, but \u, which stays as written: both sides are treated alike.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size() || text[i + 1] == 'u') {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'f' ? '\f' : c;
  }
  return out;
}

std::pair<std::string, std::string> key_and_value(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && line[end] != '=' && line[end] != ':' && !is_space(line[end])) end += line[end] == '\\' ? 2 : 1;
  end = std::min(end, line.size());
  const auto key = line.substr(0, end);
  while (end < line.size() && is_space(line[end])) ++end;
  if (end < line.size() && (line[end] == '=' || line[end] == ':')) ++end;
  while (end < line.size() && is_space(line[end])) ++end;
  return {unescape(key), unescape(line.substr(end))};
}

/// Refuses a text on which yaml-cpp 0.7 makes no progress: behind a stray `]` its parser yields empty documents for ever.
class Progress final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos <= last_) throw YAML::ParserException(mark, "text that belongs to no document");
    last_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int last_ = -1;
};

void require_progress(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Progress progress;
  while (parser.HandleNextDocument(progress)) {
  }
}

Value yaml_scalar(const YAML::Node& node) {
  const std::string text = node.Scalar();
  if (node.Tag() == "!") return Value(text);  // quoted
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return Value();
  const auto word = lower(text);
  if (word == "true" || word == "false") return Value(word == "true");
  if (const auto number = decimal(text); number && text.find_first_of(" \t") == std::string::npos) return Value(Value::Number{*number});
  return Value(text);
}

Result<Value> yaml_value(const YAML::Node& node, int depth, int& budget) {
  if (depth > kMostYamlDepth || --budget < 0) return fail(Code::invalid, "YAML: nested too deep or too large once its aliases are expanded");
  if (node.IsScalar()) return yaml_scalar(node);
  if (node.IsSequence()) {
    Value::Array out;
    for (const auto& element : node) {
      DRIFTD_TRY(Value value, yaml_value(element, depth + 1, budget));
      out.push_back(std::move(value));
    }
    return Value(std::move(out));
  }
  if (!node.IsMap()) return Value();
  Value::Object out;
  for (const auto& member : node) {
    if (!member.first.IsScalar()) return fail(Code::invalid, "YAML: a key that is no scalar");
    DRIFTD_TRY(Value value, yaml_value(member.second, depth + 1, budget));
    const auto [at, fresh] = out.try_emplace(member.first.Scalar(), std::move(value));
    if (!fresh) return fail(Code::invalid, "YAML: the key '" + at->first + "' stands twice");
  }
  return Value(std::move(out));
}

}  // namespace

Result<std::string> timestamp(std::string_view text, std::string_view unit) {
  std::string_view rest = strip(text);
  const auto word = lower(rest);
  if (word == "infinity" || word == "-infinity") return render(Value(word));
  if (!unit.empty() && decimal(rest)) return duration(rest, unit);
  const auto instant = parse_instant(rest);
  if (!instant) return not_a("an RFC 3339 timestamp with its zone", text);
  // years 1678–2261 fit into 64 bits of nanoseconds; beyond, seconds and nanoseconds are written one after the other
  const std::string nanos = std::to_string(instant->nanos);
  return decimal(std::to_string(instant->seconds) + "e9").map([&](const std::string& whole) {
    return nanos == "0" ? whole : "\"" + whole + "+" + nanos + "\"";
  });
}

Result<std::string> version(std::string_view text, std::string_view unit) {
  std::string_view rest = strip(text);
  rest = rest.substr(0, rest.find_first_of(" +\t\r\n\f\v"));
  if (rest.size() > 1 && (rest.front() == 'v' || rest.front() == 'V') && rest[1] >= '0' && rest[1] <= '9') rest.remove_prefix(1);
  if (rest.empty()) return not_a("a version", text);
  if (rest.front() < '0' || rest.front() > '9') return render(Value(lower(rest)));
  const auto dash = std::min(rest.find('-'), rest.size());
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= dash;) {
    const auto dot = std::min(rest.find('.', start), dash);
    std::string part(rest.substr(start, dot - start));
    part.erase(0, std::min(part.find_first_not_of('0'), part.size()));
    parts.push_back(part.empty() ? "0" : lower(part));
    start = dot + 1;
  }
  if (unit == "major") parts.resize(1);
  if (unit == "minor" && parts.size() > 2) parts.resize(2);
  while (parts.size() > 1 && parts.back() == "0") parts.pop_back();
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : ".") + part;
  if (unit.empty()) out += lower(rest.substr(dash));
  return render(Value(out));
}

Result<std::string> pem(std::string_view text) {
  using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  std::string out;
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* der = nullptr;
  long size = 0;
  std::size_t read = 0;
  while (bio && PEM_read_bio(bio.get(), &name, &header, &der, &size) == 1) {
    const std::string_view bytes(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
    out += (out.empty() ? "" : ",") + render(Value(std::string(name) + ":" + header + to_hex(sha256(bytes))));
    ++read;
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(der, static_cast<std::size_t>(size));
  }
  std::size_t begins = 0;
  for (auto at = text.find("-----BEGIN "); at != std::string_view::npos; at = text.find("-----BEGIN ", at + 1)) ++begins;
  if (out.empty() || read < begins) return fail(Code::invalid, "expected PEM blocks, found text that does not decode");
  return "[" + out + "]";
}

Result<std::string> properties(std::string_view text) {
  Value::Object out;
  for (const auto& line : logical_lines(text)) {
    auto [key, value] = key_and_value(line);
    out.insert_or_assign(std::move(key), Value(std::move(value)));  // the last one counts, as java.util.Properties has it
  }
  return render(Value(std::move(out)));
}

Result<Value> yaml(std::string_view text) {
  if (text.size() > kMostYaml) return fail(Code::invalid, "YAML: more than 1 MiB");
  try {
    const std::string copy(text);
    require_progress(copy);
    const auto documents = YAML::LoadAll(copy);
    int budget = kMostYamlNodes;
    if (documents.empty()) return Value();
    if (documents.size() == 1) return yaml_value(documents.front(), 0, budget);
    Value::Array out;
    for (const auto& document : documents) {
      DRIFTD_TRY(Value value, yaml_value(document, 0, budget));
      out.push_back(std::move(value));
    }
    return Value(std::move(out));
  } catch (const YAML::Exception& error) {
    return fail(Code::invalid, "YAML " + std::to_string(error.mark.line + 1) + ":" + std::to_string(error.mark.column + 1) + ": " + error.msg);
  }
}

}  // namespace driftd::core::types
