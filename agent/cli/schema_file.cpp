// SPDX-License-Identifier: Apache-2.0
#include "cli/schema_file.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/exit_codes.hpp"

namespace driftd::cli {
namespace {

namespace fs = std::filesystem;

/// The folder of the package's schemas: $DRIFTD_SCHEMAS, else ../share/driftd/schemas beside the program.
fs::path folder() {
  if (const char* given = std::getenv("DRIFTD_SCHEMAS")) return given;
  std::error_code unreadable;
  return fs::read_symlink("/proc/self/exe", unreadable).parent_path().parent_path() / "share/driftd/schemas";
}

Outcome<std::shared_ptr<const core::KindSchema>> parsed(const std::string& json, const std::string& where) {
  auto schema = core::KindSchema::parse(json);
  if (!schema) return tl::unexpected(Failure{kUsage, where + ": " + schema.error().message});
  return *schema;
}

/// A provider keeps the schemas of all of its kinds in one document.
std::optional<std::string> kind_of_provider(const std::string& provider, const std::string& kind) {
  const auto text = read_text((folder() / (provider + ".json")).string());
  const auto document = text ? core::parse(*text) : Result<core::Value>(fail(Code::not_found, ""));
  const core::Value* kinds = document ? document->find("kinds") : nullptr;
  const core::Value* found = kinds == nullptr ? nullptr : kinds->find(kind);
  return found == nullptr ? std::nullopt : std::optional(core::render(*found));
}

Failure not_found(const std::string& name) {
  std::string near;
  const auto last = name.substr(name.rfind('/') + 1);
  for (const auto& known : packaged_schemas()) {
    if (known.find(last) != std::string::npos && near.size() < 200) near += (near.empty() ? "" : ", ") + known;
  }
  return {kUsage, name + ": neither a file nor a schema of this package; " +
                      (near.empty() ? "`driftd schema list` shows those" : "did you mean " + near + "?")};
}

}  // namespace

Outcome<std::string> read_text(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (in.is_open() && !in.bad() && (in || in.eof())) return text.str();
  return tl::unexpected(Failure{kUsage, file + ": cannot be read"});
}

Outcome<std::shared_ptr<const core::KindSchema>> read_schema(const std::string& file_or_name) {
  std::error_code error;
  if (fs::exists(file_or_name, error)) {
    const auto text = read_text(file_or_name);
    return text ? parsed(*text, file_or_name) : tl::unexpected(text.error());
  }
  const auto slash = file_or_name.find('/');
  const bool is_name = slash != std::string::npos && slash > 0 && file_or_name.find("..") == std::string::npos;
  if (!is_name) return tl::unexpected(not_found(file_or_name));
  const fs::path file = folder() / (file_or_name + ".json");
  if (fs::is_regular_file(file, error)) {
    const auto text = read_text(file.string());
    return text ? parsed(*text, file.string()) : tl::unexpected(text.error());
  }
  const auto kind = kind_of_provider(file_or_name.substr(0, slash), file_or_name.substr(slash + 1));
  return kind ? parsed(*kind, file_or_name) : tl::unexpected(not_found(file_or_name));
}

std::vector<std::string> packaged_schemas() {
  std::vector<std::string> out;
  std::error_code error;
  const fs::path root = folder();
  const auto options = fs::directory_options::follow_directory_symlink | fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(root, options, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".json") continue;
    const std::string name = fs::path(at->path().lexically_relative(root)).replace_extension().string();
    if (name.find('/') != std::string::npos) {
      out.push_back(name);
      continue;
    }
    const auto text = read_text(at->path().string());
    const auto document = text ? core::parse(*text) : Result<core::Value>(fail(Code::not_found, ""));
    const core::Value* kinds = document ? document->find("kinds") : nullptr;
    if (kinds == nullptr || kinds->object() == nullptr) continue;
    for (const auto& [kind, schema] : *kinds->object()) out.push_back(name + "/" + kind);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace driftd::cli
