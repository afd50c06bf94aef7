// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/value.hpp"

namespace driftd::core {

inline const std::filesystem::path kFolder = std::filesystem::path(DRIFTD_SOURCE_DIR) / "tests/golden/equality";

/// The golden files of a folder beside this one, by name.
inline std::vector<std::filesystem::path> files(const char* folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder / folder)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

inline Value load(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  auto value = parse(text.str());
  if (!value) ADD_FAILURE() << file << ": " << value.error().message;
  return value ? *value : Value(Value::Object{});
}

/// Empty: not there, or no string.
inline std::string text(const Value& value, std::string_view member) {
  const Value* found = value.find(member);
  return found != nullptr && found->string() != nullptr ? *found->string() : "";
}

inline std::string name_of_file(const testing::TestParamInfo<std::filesystem::path>& info) {
  std::string name = info.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

}  // namespace driftd::core
