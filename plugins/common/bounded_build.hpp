// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace driftd::common {

/// Builds a tree from JSON without ever building what is not kept. nlohmann's own callback searches all members of a
/// list after each of its objects, which takes hours for a list of half a million.
class BoundedBuild : public nlohmann::json_sax<nlohmann::json> {
 public:
  using json = nlohmann::json;
  /// `deepest`: maximum nesting; `max_values`: maximum number of values. What is beyond them is left out without a
  /// note.
  BoundedBuild(std::size_t deepest, std::size_t max_values) : deepest_(deepest), max_values_(max_values) {}

  /// Returns the tree, once sax_parse() has ended; null if the text held nothing that is kept.
  json take() { return std::move(root_); }

  /// The calls of nlohmann's parser. Each returns true to go on; binary values, which JSON does not have, end the
  /// parse.
  bool null() override { return scalar(nullptr); }
  bool boolean(bool v) override { return scalar(v); }
  bool number_integer(std::int64_t v) override { return scalar(v); }
  bool number_unsigned(std::uint64_t v) override { return scalar(v); }
  bool number_float(double v, const std::string&) override { return scalar(v); }
  bool string(std::string& v) override { return scalar(std::move(v)); }
  bool binary(json::binary_t&) override { return false; }
  bool key(std::string& name) override {
    if (skipped_ == 0) key_.swap(name);
    return true;
  }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 protected:
  /// Returns true if the container in the member `key` is built; `path` holds the names of the members above it.
  virtual bool keeps(const std::vector<std::string>&, const std::string&) const { return true; }

 private:
  /// Adds a value, unless it is inside a container that is left out or one too many.
  bool scalar(json v) {
    if (skipped_ == 0 && ++values_ <= max_values_) put(std::move(v));
    return true;
  }
  /// Begins a container, or begins to skip one. Returns true in both cases, so that the parser checks the rest of the
  /// document, too.
  bool open(json container) {
    const bool member = !open_.empty() && open_.back()->is_object();
    const bool leaves =
        skipped_ > 0 || open_.size() >= deepest_ || (member && !keeps(path_, key_)) || ++values_ > max_values_;
    if (leaves) return ++skipped_, true;
    path_.push_back(member ? key_ : std::string());
    open_.push_back(put(std::move(container)));
    return true;
  }
  /// Ends the innermost container, built or skipped.
  bool close() {
    if (skipped_ > 0) return --skipped_, true;
    open_.pop_back();
    path_.pop_back();
    return true;
  }
  /// The returned pointer stays valid: nothing is added to a list while one of its elements is open.
  json* put(json v) {
    if (open_.empty()) return &(root_ = std::move(v));
    json& parent = *open_.back();
    if (!parent.is_array()) return &(parent[key_] = std::move(v));
    parent.push_back(std::move(v));
    return &parent.back();
  }

  /// `skipped_` is the nesting inside a container that is left out.
  std::size_t deepest_, max_values_, values_ = 0, skipped_ = 0;
  json root_;                      ///< the tree
  std::vector<json*> open_;        ///< containers that are being built, from the root on
  std::vector<std::string> path_;  ///< member name of each entry of open_; empty for a list element and for the root
  std::string key_;                ///< member name of the next value
};

}  // namespace driftd::common
