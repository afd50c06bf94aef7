// SPDX-License-Identifier: Apache-2.0
// What every provider with driftd.apply does in the same way: compare with what was judged, run commands in order, take
// them back if one fails, and remember idempotency keys.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/extensions.hpp"

namespace driftd::common {

/// Thrown before anything runs if a value cannot be put back here; the whole request is then answered FAILED with this
/// text.
struct CannotSet : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Makes the outcome FAILED of a request that changed nothing.
sdk::Applied refused(const std::string& text);

/// One command and what takes it back.
struct Step {
  std::string command{};              ///< exact text, without a secret
  std::string undo{};                 ///< the command that takes it back; empty: nothing to take back
  std::vector<std::string> paths{};   ///< attributes that it changes
  std::function<void()> run{};        ///< throws sdk::Failure
  std::function<void()> take_back{};  ///< runs `undo`; empty if that is
  bool seals = false;  ///< it makes what came before last (a reload, a file): repeated after whatever is taken back
};

/// Returns SUCCESS with the commands of the steps and what takes them back: the answer of a dry run.
sdk::Applied show(const std::vector<Step>& steps);

/// Runs the steps in order. If one fails, takes the earlier ones back and returns FAILED, which names the failure, the
/// missing right, and what could not be taken back. Throws the failure of the first step if nobody knows whether it
/// took effect (a lost connection), or if it says that the resource is gone (NOT_FOUND).
/// `cancelled` is asked before each.
sdk::Applied carry_out(const std::vector<Step>& steps, const std::function<bool()>& cancelled);

/// Returns the names of a path of members, `a["b.c"].d`; nullopt if it has an element of a list, or is no path.
std::optional<std::vector<std::string>> member_names(std::string_view path);

/// Returns a scalar as the text that a command needs: a text without quotes, a number or `true` as in JSON. Throws
/// CannotSet for null, a list or an object.
std::string scalar_text(const nlohmann::json& value, const std::string& path);

/// Compares a resource with what was judged. Returns SUCCESS if every value is the new one already, nullopt if every
/// value is still the old one. Throws CONFLICT, which names the first attribute that is another one. `unordered` says
/// of which attributes the order of a list does not count.
std::optional<sdk::Applied> compare_judged(const sdk::Record& now, const sdk::Apply& request,
                                           const std::function<bool(const std::string& path)>& unordered);

/// The last 1024 requests that were carried out or accepted. One thread at a time.
class AppliedRequests {
 public:
  /// Returns the outcome of an earlier request with this key, `changed` false; nullopt if it is not known. Throws
  /// INVALID if that was another change.
  std::optional<sdk::Applied> find(const sdk::Apply& request) const;
  void remember(const sdk::Apply& request, const sdk::Applied& outcome);

 private:
  struct Entry {
    std::string change;  ///< resource, paths and new values
    sdk::Applied outcome;
  };
  std::map<std::string, Entry> entries_;
  std::deque<std::string> order_;  ///< oldest first
};

}  // namespace driftd::common
