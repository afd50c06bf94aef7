// SPDX-License-Identifier: Apache-2.0
// Texts with an inner form: versions, timestamps, PEM, properties.
#include <openssl/pem.h>
#include <algorithm>
#include <memory>
#include <optional>

#include "base/digest.hpp"
#include "base/instant.hpp"
#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

constexpr std::size_t kMaxVersionBytes = 256;  ///< a longer text is not a version

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\f'; }

/// Joins lines that end in an odd number of backslashes; drops comments and blank lines.
Result<std::vector<std::string>> logical_lines(std::string_view text) {
  std::vector<std::string> out;
  bool joining = false;
  while (!text.empty()) {
    if (out.size() > kMaxElements) return too_large("properties: more than " + std::to_string(kMaxElements) + " lines");
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

/// Decodes escapes of java.util.Properties except \u, which stays as written on both sides of a comparison.
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

/// Splits an entry at its first `=`, `:` or blank that has no backslash before it.
std::pair<std::string, std::string> parse_entry(std::string_view line) {
  std::size_t end = 0;
  while (end < line.size() && line[end] != '=' && line[end] != ':' && !is_space(line[end]))
    end += line[end] == '\\' ? 2 : 1;
  end = std::min(end, line.size());
  const auto key = line.substr(0, end);
  while (end < line.size() && is_space(line[end])) ++end;
  if (end < line.size() && (line[end] == '=' || line[end] == ':')) ++end;
  while (end < line.size() && is_space(line[end])) ++end;
  return {unescape(key), unescape(line.substr(end))};
}

}  // namespace

Result<std::string> timestamp(std::string_view text, std::string_view unit) {
  std::string_view rest = strip(text);
  const auto word = lower(rest);
  if (word == "infinity" || word == "-infinity") return render(Value(word));
  if (!unit.empty() && decimal(rest)) return duration(rest, unit);
  constexpr std::size_t kDate = std::string_view("2027-01-01").size();
  const auto instant = rest.size() == kDate ? parse_instant(std::string(rest) + "T00:00:00Z") : parse_instant(rest);
  if (!instant) return type_mismatch("an RFC 3339 timestamp with its zone", text);
  // years 1678–2261 fit into 64 bits of nanoseconds; for others seconds and nanoseconds are written one after the other
  const std::string nanos = std::to_string(instant->nanos);
  return decimal(std::to_string(instant->seconds) + "e9").map([&](const std::string& whole) {
    return nanos == "0" ? whole : "\"" + whole + "+" + nanos + "\"";
  });
}

Result<std::string> version(std::string_view text, std::string_view unit) {
  std::string_view rest = strip(text);
  rest = rest.substr(0, rest.find_first_of(" +\t\r\n\f\v"));
  if (rest.size() > 1 && (rest.front() == 'v' || rest.front() == 'V') && rest[1] >= '0' && rest[1] <= '9')
    rest.remove_prefix(1);
  if (rest.empty() || rest.size() > kMaxVersionBytes) return type_mismatch("a version", text);
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
  while (unit != "declared" && parts.size() > 1 && parts.back() == "0") parts.pop_back();
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : ".") + part;
  if (unit.empty() || unit == "declared") out += lower(rest.substr(dash));
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
    if (read > kMaxElements) return too_large("PEM: more than " + std::to_string(kMaxElements) + " blocks");
  }
  std::size_t begins = 0;
  for (auto at = text.find("-----BEGIN "); at != std::string_view::npos; at = text.find("-----BEGIN ", at + 1))
    ++begins;
  if (out.empty() || read < begins) return fail(Code::invalid, "expected PEM blocks, found text that does not decode");
  return "[" + out + "]";
}

Result<std::string> properties(std::string_view text) {
  Value::Object out;
  DRIFTD_TRY(const auto lines, logical_lines(text));
  for (const auto& line : lines) {
    auto [key, value] = parse_entry(line);
    // the last one counts, as in java.util.Properties
    out.insert_or_assign(std::move(key), Value(std::move(value)));
  }
  return render(Value(std::move(out)));
}

}  // namespace driftd::core::types
