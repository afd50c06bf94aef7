// SPDX-License-Identifier: Apache-2.0
#include "fields.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace syslog_sink {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDepth = 256;  // of objects and arrays; a hostile document may be nothing but brackets

// What nlohmann::json calls while it reads: it keeps the fields that are wanted. The names are that library's.
class Reader {
 public:
  Reader(Fields& out, const Wanted& wanted) : out_(out), wanted_(wanted) {}

  bool null() { return step(); }
  bool boolean(bool) { return step(); }
  bool number_integer(std::int64_t value) { return keep(std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) { return keep(std::to_string(value)); }
  bool number_float(double, const std::string&) { return step(); }
  bool string(std::string& value) { return keep(value); }
  bool binary(Json::binary_t&) { return step(); }
  bool start_object(std::size_t) { return enter(false); }
  bool start_array(std::size_t) { return enter(true); }
  bool key(std::string& name) {
    levels_.back().name = name;
    return true;
  }
  bool end_object() { return leave(); }
  bool end_array() {
    const std::string items = std::to_string(levels_.back().items);
    levels_.pop_back();
    if (!levels_.empty() && wanted_(levels_.back().name)) out_[path() + "[]"] = items;
    return step();
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) { return false; }

 private:
  // An object or array that the reader is in, and where it is there.
  struct Level {
    bool array = false;
    std::size_t items = 0;  // of an array, so far
    std::string name;       // of an object's member
  };

  bool enter(bool array) {
    if (levels_.size() == kMaxDepth) return false;
    levels_.push_back({array, 0, {}});
    return true;
  }
  bool leave() {
    levels_.pop_back();
    return step();
  }
  // A value is over: the next item of an array follows.
  bool step() {
    if (!levels_.empty()) ++levels_.back().items;
    return true;
  }
  bool keep(const std::string& value) {
    if (!levels_.empty() && wanted_(levels_.back().name)) out_[path()] = value;
    return step();
  }
  std::string path() const {
    std::string out;
    for (const auto& level : levels_) {
      if (!out.empty()) out += '.';
      out += level.array ? std::to_string(level.items) : level.name;
    }
    return out;
  }

  Fields& out_;
  const Wanted& wanted_;
  std::vector<Level> levels_;
};

}  // namespace

std::optional<Fields> read_fields(std::string_view json, const Wanted& wanted) {
  Fields out;
  Reader reader(out, wanted);
  if (!Json::sax_parse(json, &reader)) return std::nullopt;
  return out;
}

std::string get(const Fields& fields, std::string_view path, std::string_view otherwise) {
  const auto found = fields.find(path);
  return found == fields.end() ? std::string(otherwise) : found->second;
}

}  // namespace syslog_sink
