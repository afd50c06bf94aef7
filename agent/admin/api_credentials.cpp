// SPDX-License-Identifier: Apache-2.0
// Values behind references, as JSON that is made by hand: every copy of a value that is ours is wiped.
#include "admin/api.hpp"
#include "admin/fields.hpp"
#include "admin/query.hpp"
#include "base/digest.hpp"
#include "base/escape.hpp"

namespace driftd::admin {
namespace {

constexpr std::size_t kMaxEscape = 6;      // bytes of `\u001f` for one byte
constexpr std::size_t kBytesOfFrame = 64;  // around a reference and its value

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = utf8_sequence(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

void append_quoted(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (byte >= 0x20) {
      out += c;
      continue;
    }
    out += "\\u00";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  out += '"';
}

std::string render_values(const std::vector<std::string>& references, const std::vector<Secret>& values) {
  std::size_t size = kBytesOfFrame;
  for (std::size_t i = 0; i < values.size(); ++i) {
    size += kBytesOfFrame + kMaxEscape * (references[i].size() + values[i].reveal().size());
  }
  std::string out;
  out.reserve(size);  // a text that grows leaves its bytes behind
  out += "{\"credentials\":[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    out += i == 0 ? "{\"reference\":" : ",{\"reference\":";
    append_quoted(out, references[i]);
    if (is_utf8(values[i].reveal())) {
      out += ",\"value\":";
      append_quoted(out, values[i].reveal());
    } else {
      std::string encoded = base64(values[i].reveal());
      out += ",\"base64\":";
      append_quoted(out, encoded);
      wipe(encoded);
    }
    out += '}';
  }
  out += "]}\n";
  return out;
}

}  // namespace

Task<Response> Api::resolve_credentials(Request request) {
  if (deps_.credentials == nullptr) co_return error_response(no_such_path(request));
  auto fields = Fields::parse(request.body);
  if (!fields) co_return error_response(fields.error());
  core::CredentialRequest asked;
  asked.backend = fields->text("backend");
  asked.references = fields->texts("references");
  if (const Status good = fields->check(); !good) co_return error_response(good.error());
  asked.caller.name = request.actor;
  asked.caller.process = request.caller;
  asked.caller.gids = request.gids;
  asked.caller.confidential = true;  // a Unix socket
  const std::vector<std::string> references = asked.references;
  const auto values = co_await deps_.credentials->resolve(std::move(asked));
  if (!values) co_return error_response(values.error());
  Response out;
  out.body = render_values(references, *values);
  out.secret = true;
  co_return out;
}

}  // namespace driftd::admin
