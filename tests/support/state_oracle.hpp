// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::test {

/// An instance as it must be read.
struct ExpectedInstance {
  std::string id;
  nlohmann::json attributes;  ///< without what nests too deep
};

inline int nesting_of(const nlohmann::json& value) {
  int out = 0;
  if (!value.is_structured()) return out;
  for (const auto& member : value) out = std::max(out, nesting_of(member));
  return out + 1;
}

/// Returns the managed instances of a state of format v4 in the plainest way: by a tree of the whole document. The
/// document is valid.
inline std::vector<ExpectedInstance> expected_instances(const nlohmann::json& state) {
  std::vector<ExpectedInstance> out;
  for (const auto& resource : state.at("resources")) {
    if (resource.at("mode") != "managed") continue;
    for (const auto& instance : resource.at("instances")) {
      std::string id = resource.value("module", "");
      id += (id.empty() ? "" : ".") + resource.at("type").get<std::string>() + "." +
            resource.at("name").get<std::string>();
      if (instance.contains("index_key") && !instance["index_key"].is_null())
        id += "[" + instance["index_key"].dump() + "]";
      if (instance.contains("deposed")) id += " (deposed " + instance["deposed"].get<std::string>() + ")";
      nlohmann::json attributes = instance.value("attributes", nlohmann::json::object());
      for (auto at = attributes.begin(); at != attributes.end();)
        at = nesting_of(*at) > 126 ? attributes.erase(at) : std::next(at);
      out.push_back({id, attributes});
    }
  }
  return out;
}

/// Writes JSON and states at random, in every form that a parser may meet; the same for the same seed.
class StateWriter {
 public:
  explicit StateWriter(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t bound) { return random_() % bound; }
  /// White space, mostly none.
  std::string blank() { return blanks_ && below(3) == 0 ? std::string(1 + below(3), " \n\t\r"[below(4)]) : ""; }

  std::string text(std::size_t longest = 12) {
    static constexpr const char* kPieces[] = {
        "a",   "key",     "password",       "_",       "0",  "ä", "→", "\xF0\x9F\x98\x80", "\\n", "\\\"", "\\\\",
        "\\/", "\\u00e9", "\\ud83d\\ude00", "\\u0000", "<&>"};
    std::string out = "\"";
    for (std::size_t i = below(longest); i > 0; --i) out += kPieces[below(below(3) == 0 ? std::size(kPieces) : 8)];
    return out + "\"";
  }
  std::string number() {
    static constexpr const char* kNumbers[] = {"0",
                                               "-0",
                                               "7",
                                               "-12",
                                               "1.50",
                                               "0.0315",
                                               "1e5",
                                               "2E-3",
                                               "1.0e+10",
                                               "18446744073709551615",
                                               "123456789012345678901234567890"};
    return kNumbers[below(std::size(kNumbers))];
  }
  std::string key() {
    static constexpr const char* kKeys[] = {
        "id",  "name", "tags",       "password", "db_password", "api_key", "token", "Secret",         "monitoring",
        "a.b", "x y",  "public_key", "arn",      "result",      "data",    "ä",     "rule.0.password"};
    if (below(12) == 0) return text(4);
    return "\"" + std::string(kKeys[below(std::size(kKeys))]) + (below(3) == 0 ? std::to_string(below(9)) : "") + "\"";
  }
  std::string value(int depth) {
    switch (below(depth <= 0 ? 5 : 8)) {
      case 0:
        return number();
      case 1:
        return "null";
      case 2:
        return below(2) == 0 ? "true" : "false";
      case 3:
      case 4:
        return text(below(40) == 0 ? 400 : 12);
      case 5:
        return list(depth - 1);
      default:
        return object(depth - 1);
    }
  }
  std::string list(int depth) {
    if (below(60) == 0) {  // about the deepest that is read
      const std::size_t levels = 120 + below(12);
      return std::string(levels, '[') + std::string(levels, ']');
    }
    std::string out = "[" + blank();
    for (std::size_t i = below(4); i > 0; --i) out += value(depth) + blank() + (i > 1 ? "," + blank() : "");
    return out + "]";
  }
  std::string object(int depth) {
    std::vector<std::string> keys;
    for (std::size_t i = below(7); i > 0; --i) keys.push_back(key());
    if (below(3) != 0) std::sort(keys.begin(), keys.end());
    std::string out = "{" + blank();
    for (std::size_t i = 0; i < keys.size(); ++i)
      out += (i > 0 ? "," : "") + blank() + keys[i] + blank() + ":" + blank() + value(depth) + blank();
    return out + "}";
  }

  /// A whole state of format v4, whose addresses are unique.
  std::string state(std::size_t resources) {
    blanks_ = below(2) == 0;
    std::string out = R"({"version":4,"serial":7,"lineage":"abc","terraform_version":"1.9.0","outputs":{)";
    for (std::size_t i = below(3); i > 0; --i)
      out += "\"o" + std::to_string(i) + "\":{\"value\":" + value(3) + "}" + (i > 1 ? "," : "");
    out += "},\"other\":" + value(4) + ",\"resources\":[" + blank();
    for (std::size_t i = 0; i < resources; ++i) out += (i > 0 ? "," : "") + blank() + resource(i) + blank();
    return out + "]" + blank() + "}" + blank();
  }

 private:
  std::string resource(std::size_t number) {
    static constexpr const char* kTypes[] = {"aws_instance", "kubernetes_secret", "random_password", "x_y"};
    std::vector<std::string> head = {"\"mode\":" + blank() + (below(6) == 0 ? "\"data\"" : "\"managed\""),
                                     "\"type\":\"" + std::string(kTypes[below(std::size(kTypes))]) + "\"",
                                     "\"name\":" + blank() + "\"n" + std::to_string(number) + "\"",
                                     R"("provider":"provider[\"registry.terraform.io/hashicorp/aws\"]")"};
    if (below(2) == 0) head.push_back(R"("module":"module.m")");
    std::shuffle(head.begin(), head.end(), random_);
    std::string list = "\"instances\":[" + blank();
    const std::size_t count = below(4);
    for (std::size_t i = 0; i < count; ++i) list += (i > 0 ? "," : "") + instance(i) + blank();
    head.insert(below(4) == 0 ? head.begin() : head.end(), list + "]");
    std::string out = "{" + blank();
    for (std::size_t i = 0; i < head.size(); ++i) out += (i > 0 ? "," : "") + blank() + head[i] + blank();
    return out + "}";
  }
  std::string marks() {
    static constexpr const char* kMarks[] = {
        R"([{"type":"get_attr","value":"id"}])",
        R"([{"type":"get_attr","value":"tags"}])",
        "[]",
        "7",
        R"([{"type":"get_attr","value":"deep"},{"type":"index","value":{"value":0,"type":"number"}}])",
        R"([{"type":"get_attr","value":"id"},{"type":"index","value":{"value":"name","type":"string"}}])"};
    return R"("sensitive_attributes":[)" + blank() + kMarks[below(3) == 0 ? below(std::size(kMarks)) : 0] + blank() +
           "," + kMarks[1] + "]";
  }
  /// Attributes that hold the value of `id` in other places, also in another spelling.
  std::string copies() {
    const std::string secret = value(3);
    std::string other = secret;
    for (auto at = other.find("\\/"); at != other.npos; at = other.find("\\/", at)) other.replace(at, 2, "/");
    return "{\"copy\":" + other + blank() + ",\"deep\":[{\"x\":" + secret + ",\"y\":1}]," + blank() +
           "\"id\":" + secret + ",\"part\":[" + other + "]}";
  }
  std::string instance(std::size_t number) {
    std::vector<std::string> parts = {
        "\"attributes\":" + blank() + (below(4) == 0 ? copies() : object(4)),
        "\"index_key\":" + (below(2) == 0 ? std::to_string(number) : "\"k\\\"" + std::to_string(number) + "\"")};
    if (below(3) == 0) parts.push_back("\"private\":" + value(2));
    switch (below(3)) {
      case 0:
        parts.push_back(R"("sensitive_attributes":[])");
        break;
      case 1:
        parts.push_back(marks());
        break;
      default:
        break;
    }
    if (below(9) == 0) parts.push_back(R"("deposed":"12ab34cd")");
    if (below(9) == 0) parts.push_back(R"("status":"tainted")");
    std::shuffle(parts.begin(), parts.end(), random_);
    std::string out = "{";
    for (std::size_t i = 0; i < parts.size(); ++i) out += (i > 0 ? "," : "") + blank() + parts[i] + blank();
    return out + "}";
  }

  std::mt19937 random_;
  bool blanks_ = true;
};

}  // namespace driftd::test
