// SPDX-License-Identifier: Apache-2.0
#include "ipc/provider_info.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/scope.hpp"
#include "core/value/parse_limits.hpp"
#include "core/value/value.hpp"
#include "ipc/limits.hpp"
#include "ipc/settings_schema.hpp"
#include "ipc/sink_info.hpp"

namespace driftd::ipc {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxNames = 256;      // number of kinds or types
constexpr std::size_t kMaxNameBytes = 128;  // of a kind, a type, id or version

/// Returns true if a text may be a name: names go into logs, events, tables and subjects.
bool is_name(const Json& given) {
  if (!given.is_string()) return false;
  const auto& text = given.get_ref<const std::string&>();
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  return !text.empty() && text.size() <= kMaxNameBytes && std::none_of(text.begin(), text.end(), control);
}

Result<std::vector<std::string>> names(const Json& describe, const char* member, const std::string& file) {
  const auto found = describe.find(member);
  const bool list = found != describe.end() && found->is_array() && !found->empty() && found->size() <= kMaxNames;
  std::set<std::string> out;
  for (const auto& item : list ? *found : Json::array()) {
    if (is_name(item)) out.insert(item.get<std::string>());
  }
  if (!list || out.size() != found->size()) {
    return fail(Code::invalid,
                fmt::format("{}: describe: `{}` must be a list of 1 to {} names, each once, of 1 to {} bytes "
                            "without control characters",
                            file, member, kMaxNames, kMaxNameBytes));
  }
  return found->get<std::vector<std::string>>();
}

Status not_ours(const std::vector<std::string>& kinds, const std::string& file) {
  const auto found = std::find_if(kinds.begin(), kinds.end(), core::is_own_kind);
  if (found == kinds.end()) return {};
  return fail(Code::invalid, fmt::format("{}: describe: kind `{}` is reserved for the agent (backend, claim, scope); "
                                         "expected another name, such as `oauth_{}`",
                                         file, *found, *found));
}

Result<std::string> text_member(const Json& describe, const char* member, const std::string& file) {
  const auto found = describe.find(member);
  if (found == describe.end() || !is_name(*found)) {
    return fail(Code::invalid,
                fmt::format("{}: describe: `{}` must be a text of 1 to {} bytes without control characters", file,
                            member, kMaxNameBytes));
  }
  return found->get<std::string>();
}

Result<int> concurrency(const Json& describe, const std::string& file) {
  const auto found = describe.find("concurrency");
  if (found == describe.end()) return 1;
  if (!found->is_number_integer() || *found < 1 || *found > 64) {
    return fail(Code::invalid,
                fmt::format("{}: describe: `concurrency` must be 1 to 64, found {}", file, found->dump()));
  }
  return found->get<int>();
}

/// core::parse limits nesting depth; nlohmann would recurse until the stack overflows.
Status readable(const std::string& text, const std::string& where) {
  if (const auto parsed = core::parse(text, core::kBodyLimits); !parsed)
    return fail(Code::invalid, where + ": " + parsed.error().message);
  return {};
}

Result<Json> object(const std::string& text, const std::string& where) {
  if (text.size() > kMaxDocument)
    return fail(Code::invalid, fmt::format("{}: has {} bytes, at most {}", where, text.size(), kMaxDocument));
  DRIFTD_CHECK(readable(text, where));
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return fail(Code::invalid, where + ": expected a JSON object, found something else");
  return json;
}

Status parse_schemas(const LoadAnswer& loaded, core::ProviderInfo& info) {
  for (const auto& kind : info.kinds) {
    const auto text = loaded.kinds.find(kind);
    if (text == loaded.kinds.end())
      return fail(Code::invalid, fmt::format("{}: kind `{}` has no schema", loaded.file, kind));
    if (text->second.size() > kMaxDocument) {
      return fail(Code::invalid, fmt::format("{}: schema of kind `{}` has {} bytes, at most {}", loaded.file, kind,
                                             text->second.size(), kMaxDocument));
    }
    auto schema = core::KindSchema::parse(text->second);
    if (!schema) {
      return fail(Code::invalid, fmt::format("{}: schema of kind `{}`: {}", loaded.file, kind, schema.error().message));
    }
    if ((*schema)->kind() != kind) {
      return fail(Code::invalid, fmt::format("{}: schema of kind `{}` says that it is of kind `{}`", loaded.file, kind,
                                             (*schema)->kind()));
    }
    info.schemas[kind] = *schema;
  }
  info.schema_texts = loaded.kinds;
  return {};
}

/// Parses `free_form`, {kind or kind/id: [paths]}: the paths whose values have no meaning to the system itself.
Result<std::vector<core::FreeForm>> free_form(const Json& describe, const std::string& file) {
  std::vector<core::FreeForm> out;
  const auto found = describe.find("free_form");
  if (found == describe.end()) return out;
  const auto wrong = [&](const std::string& what) {
    return fail(
        Code::invalid,
        fmt::format("{}: describe: `free_form`{} must be an object of lists of paths, as {{\"object\": [\"**\"]}}",
                    file, what));
  };
  if (!found->is_object() || found->size() > kMaxNames) return wrong("");
  for (const auto& [where, paths] : found->items()) {
    if (!paths.is_array() || paths.size() > kMaxNames) return wrong("." + where.substr(0, kMaxNameBytes));
    const auto slash = where.find('/');
    for (const auto& path : paths) {
      if (!is_name(path) || !core::Glob::parse_path(path.get<std::string>()))
        return wrong("." + where.substr(0, kMaxNameBytes));
      out.push_back(
          {where.substr(0, slash), slash == std::string::npos ? "" : where.substr(slash + 1), path.get<std::string>()});
    }
  }
  return out;
}

}  // namespace

Result<std::vector<std::string>> declared_kinds(const std::string& describe, const std::string& file) {
  DRIFTD_TRY(const Json json, object(describe, file + ": describe"));
  return names(json, "kinds", file);
}

std::set<core::Extension> declared_extensions(const std::string& describe) {
  std::set<core::Extension> out;
  const Json json = Json::parse(describe, nullptr, false);
  if (!json.is_object() || !json.contains("extensions") || !json["extensions"].is_array()) return out;
  for (const auto& extension : json["extensions"]) {
    const auto member = [&](const char* name) {
      return extension.is_object() ? extension.value(name, Json()) : Json();
    };
    const Json id = member("id"), revision = member("revision");
    if (id.is_string() && revision.is_number_unsigned())
      out.insert({id.get<std::string>(), revision.get<std::uint32_t>()});
  }
  return out;
}

std::set<std::string> declared_metrics(const std::string& describe) {
  std::set<std::string> out;
  const Json json = Json::parse(describe, nullptr, false);
  if (!json.is_object() || !json.contains("metrics") || !json["metrics"].is_array()) return out;
  for (const auto& metric : json["metrics"]) {
    const auto name = metric.is_object() ? metric.find("name") : metric.end();
    if (name != metric.end() && name->is_string()) out.insert(name->get<std::string>());
  }
  return out;
}

Result<std::shared_ptr<const core::ProviderInfo>> parse_info(const LoadAnswer& loaded) {
  try {
    DRIFTD_TRY(const Json describe, object(loaded.describe, loaded.file + ": describe"));
    DRIFTD_TRY(const Json settings, object(loaded.settings_schema, loaded.file + ": schema(\"settings\")"));
    auto info = std::make_shared<core::ProviderInfo>();
    info->file = loaded.file;
    DRIFTD_TRY(info->id, text_member(describe, "id", loaded.file));
    DRIFTD_TRY(info->version, text_member(describe, "version", loaded.file));
    DRIFTD_TRY(info->concurrency, concurrency(describe, loaded.file));
    if (loaded.sink) {
      DRIFTD_TRY(info->sink, parse_sink_info(loaded.describe, loaded.file));
    } else {
      DRIFTD_TRY(info->types, names(describe, "types", loaded.file));
      DRIFTD_TRY(info->kinds, names(describe, "kinds", loaded.file));
    }
    DRIFTD_CHECK(not_ours(info->kinds, loaded.file));
    info->extensions = loaded.extensions;
    info->has_watch = info->offers("driftd.watch");
    info->has_diff = describe.value("diff", false);
    DRIFTD_TRY(info->free_form, free_form(describe, loaded.file));
    DRIFTD_TRY(const auto sensitive, sensitive_settings(loaded.settings_schema));
    (void)sensitive;  // read again for each backend; an unreadable schema is refused here
    info->settings_schema = loaded.settings_schema;
    info->describe = loaded.describe;
    DRIFTD_CHECK(parse_schemas(loaded, *info));
    return info;
  } catch (const Json::exception& e) {  // a member has another type than value() expects
    return fail(Code::invalid, fmt::format("{}: describe: {}", loaded.file, e.what()));
  }
}

}  // namespace driftd::ipc
