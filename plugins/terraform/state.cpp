// SPDX-License-Identifier: Apache-2.0
#include "terraform/state.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <unordered_set>
#include <utility>

#include "common/bounded_json.hpp"
#include "common/checked_digest.hpp"
#include "driftd/sdk/types.hpp"
#include "terraform/scanner.hpp"
#include "terraform/text_members.hpp"
#include "terraform/tree.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

using Hash = std::pair<std::uint64_t, std::uint64_t>;

constexpr std::size_t kMaxFailing = 20;
constexpr char kNoAttributes[2 + kPadding] = "{}";

/// Returns true for the digits of a whole number, of any size.
bool is_whole(std::string_view token) {
  if (token.starts_with('-')) token.remove_prefix(1);
  return !token.empty() &&
         std::all_of(token.begin(), token.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// `module.m.aws_x.y["k"]`, `data.aws_x.y[0]`.
std::string address_of(const Resource& resource, std::string_view index_key) {
  std::string out;
  out.reserve(resource.module.size() + resource.type.size() + resource.name.size() + index_key.size() + 16);
  if (!resource.module.empty()) out.append(resource.module).append(".");
  if (resource.mode == "data") out += "data.";
  out.append(resource.type).append(".").append(resource.name);
  if (index_key.empty() || index_key == "null") return out;
  if (index_key.starts_with('"') && index_key.find('\\') != index_key.npos)
    return out + "[" + json(text_value(index_key)).dump() + "]";
  if (!index_key.starts_with('"') && !is_whole(index_key))
    corrupt(out + ": index_key is neither text nor a whole number");
  return out.append("[").append(index_key == "-0" ? "0" : index_key).append("]");
}

void check_resource(const Resource& resource) {
  if (resource.type.empty() || resource.name.empty()) corrupt("resources: an entry without type or name");
  if (resource.mode != "managed" && resource.mode != "data") {
    corrupt("resources: " + resource.type + "." + resource.name + ": unknown mode '" + resource.mode + "'");
  }
}

constexpr int kUnknownVersion = 1000;

/// Returns the digits of a number or the value of a text; empty for anything else.
std::string text_or_digits(std::string_view token) {
  const bool number =
      token.starts_with('-') || (!token.empty() && std::isdigit(static_cast<unsigned char>(token[0])) != 0);
  return number ? std::string(token) : text_value(token);
}

bool take_top(const std::string& key, std::string_view value, Head& out) {
  if (key == "version") {
    if (!is_whole(value)) corrupt("the state file's 'version' is no whole number");
    out.version = kUnknownVersion;
    if (value.size() <= 3 && value[0] != '-') std::from_chars(value.data(), value.data() + value.size(), out.version);
  }
  if (key == "serial") out.serial = text_or_digits(value);
  if (key == "lineage") out.lineage = text_or_digits(value);
  if (key == "terraform_version") out.terraform_version = text_or_digits(value);
  return true;
}

/// SHA-256, cut to 64 bits: a cursor holds it, and a cursor must not reveal anything of a secret.
class Digest {
 public:
  /// Adds a name, or JSON of which white space between tokens does not count.
  void add_name(std::string_view name) {
    common::require_digest(EVP_DigestUpdate(context_.get(), name.data(), name.size()) == 1 &&
                           EVP_DigestUpdate(context_.get(), "\n", 1) == 1);
  }
  void add_json(std::string_view text) { add_name(minified(text, minified_)); }
  std::string take() {
    unsigned char sum[EVP_MAX_MD_SIZE];
    common::require_digest(EVP_DigestFinal_ex(context_.get(), sum, nullptr) == 1);
    std::string out;
    for (int i = 0; i < 8; ++i) {
      out += "0123456789abcdef"[sum[i] >> 4];
      out += "0123456789abcdef"[sum[i] & 15];
    }
    return out;
  }

 private:
  common::DigestContext context_ = common::begin_sha256();
  std::string minified_;
};

/// Finds out whether an address stands twice, in 16 bytes for each.
class Addresses {
 public:
  void add(const std::string& address, const std::string& deposed) { hashes_.push_back(hash(address, deposed)); }
  /// Returns hashes that were added twice, sorted. Nothing may be added behind that.
  std::vector<Hash> twice() {
    std::sort(hashes_.begin(), hashes_.end());
    std::vector<Hash> out;
    for (auto at = hashes_.begin(); (at = std::adjacent_find(at, hashes_.end())) != hashes_.end(); ++at)
      out.push_back(*at);
    return out;
  }
  static Hash hash(const std::string& address, const std::string& deposed) {
    const std::string both = address + " " + deposed;
    const XXH128_hash_t out = XXH3_128bits(both.data(), both.size());
    return {out.high64, out.low64};
  }

 private:
  std::vector<Hash> hashes_;
};

class HeadReader final : public DocumentVisitor {
 public:
  bool top(const std::string& key, std::string_view value) override { return take_top(key, value, head); }
  bool encrypted() override {
    head.encrypted = true;  // the rest is one long text; reading goes on only for members behind it
    return head.lineage.empty() || head.serial == "0";
  }
  bool output(const std::string& name, std::string_view output) override {
    digest.add_name(name);
    digest.add_json(output);
    return ++head.outputs, true;
  }
  bool check(std::string_view check) override {
    const json object = check.starts_with('{') ? parse_tree(check, common::kMaxNesting) : json();
    const std::string status = text_of(object, "status");
    ++head.checks[status.empty() ? "unknown" : status];
    if (status == "fail" && head.failing.size() < kMaxFailing) head.failing.push_back(text_of(object, "config_addr"));
    return true;
  }
  bool instance(const Resource& resource, const InstanceText& text) override {
    check_resource(resource);
    const Instance instance(resource, text);
    if (resource.mode == "data") return ++head.data, true;
    ++(instance.deposed.empty() ? head.managed : head.deposed);
    addresses.add(instance.address, instance.deposed);
    digest.add_name(instance.address);
    digest.add_json(text.text);
    return true;
  }
  Head head;
  Digest digest;
  Addresses addresses;
};

/// Names the first address that stands twice, of those with these hashes.
class TwiceReader final : public DocumentVisitor {
 public:
  explicit TwiceReader(const std::vector<Hash>& hashes) : hashes_(hashes) {}
  bool top(const std::string&, std::string_view) override { return true; }
  bool encrypted() override { return false; }
  bool output(const std::string&, std::string_view) override { return true; }
  bool check(std::string_view) override { return true; }
  bool instance(const Resource& resource, const InstanceText& text) override {
    const Instance instance(resource, text);
    if (resource.mode == "data") return true;
    if (!std::binary_search(hashes_.begin(), hashes_.end(), Addresses::hash(instance.address, instance.deposed)))
      return true;
    if (!seen_.insert(instance.address + " " + instance.deposed).second)
      corrupt(instance.address + ": stands twice in the state");
    return true;
  }

 private:
  const std::vector<Hash>& hashes_;
  std::unordered_set<std::string> seen_;
};

class ContentsReader final : public DocumentVisitor {
 public:
  explicit ContentsReader(StateVisitor& to) : to_(to) {}
  bool top(const std::string&, std::string_view) override { return true; }
  bool encrypted() override { return false; }
  bool output(const std::string& name, std::string_view output) override {
    return to_.output(name, parse_tree(output, common::kMaxNesting));
  }
  bool check(std::string_view) override { return true; }
  bool instance(const Resource& resource, const InstanceText& text) override {
    return resource.mode != "managed" || to_.instance(Instance(resource, text));
  }

 private:
  StateVisitor& to_;
};

class Peek final : public DocumentVisitor {
 public:
  bool top(const std::string& key, std::string_view value) override { return take_top(key, value, head); }
  bool encrypted() override { return false; }
  bool output(const std::string&, std::string_view) override { return true; }
  bool check(std::string_view) override { return true; }
  bool instance(const Resource&, const InstanceText&) override { return false; }
  Head head;
};

}  // namespace

Instance::Instance(const Resource& of, const InstanceText& text)
    : resource(of),
      type(of.type),
      address(address_of(of, text.index_key)),
      deposed(text_value(text.deposed)),
      status(text_value(text.status)),
      attributes(kNoAttributes, 2),
      traits(text.traits),
      sensitive(text.sensitive_attributes) {
  for (const auto& [name, given] :
       {std::pair{"attributes", text.attributes}, {"attributes_flat", text.attributes_flat}}) {
    if (given.empty() || given == "null") continue;
    if (!given.starts_with('{')) corrupt(address + ": '" + name + "' is not an object");
    attributes = given;
    flat = given.data() != text.attributes.data();
    break;
  }
}

Instance::Instance(const Resource& of, const InstanceText& text, json tree) : Instance(of, text) {
  tree_ = std::move(tree);
}

const json& Instance::tree() const {
  if (!tree_) tree_ = parse_tree(attributes, common::kMaxNesting - 1);
  return *tree_;
}

bool Instance::is_plain() const {
  if (!plain_) plain_ = !traits.deep && !traits.escaped && (!traits.unordered || !has_key_twice(attributes.data()));
  return *plain_;
}

std::string Instance::id() const { return deposed.empty() ? address : address + " (deposed " + deposed + ")"; }

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Head read_head(const Spool& state) {
  if (state.size() == 0) corrupt("the state file is empty");
  HeadReader reader;
  const auto outline = std::make_shared<Outline>();
  walk(state, reader, *outline);
  Head& head = reader.head;
  if (head.encrypted) {
    head.version = 0;
    return std::move(head);
  }
  if (head.version == 0) corrupt("the state file has no 'version'");
  if (head.version > 4) {
    throw sdk::Failure(DRIFTD_UNSUPPORTED,
                       "state format version " +
                           (head.version == kUnknownVersion ? "unknown" : std::to_string(head.version)) +
                           "; this provider reads versions 1 to 4");
  }
  if (head.version < 4) {
    const json document = parse_whole(state);
    legacy_head(document, head);
    reader.digest.add_json(state.text());
  } else if (head.lineage.empty()) {
    corrupt("the state file has no 'lineage'");
  }
  if (const auto twice = reader.addresses.twice(); !twice.empty()) {
    TwiceReader named(twice);
    walk_again(state, named, *outline);
  }
  head.digest = reader.digest.take();
  head.outline = outline;
  return std::move(head);
}

Head peek(std::string_view beginning) {
  Peek reader;
  try {
    walk(beginning, reader);
  } catch (const std::exception&) {  // it is only a part: what was seen until then is all there is
  }
  return std::move(reader.head);
}

void read_contents(const Spool& state, const Head& head, StateVisitor& to) {
  if (head.encrypted) return;
  if (head.version < 4) return legacy_contents(parse_whole(state), to);
  ContentsReader reader(to);
  walk_again(state, reader, head.outline ? *head.outline : Outline());
}

}  // namespace driftd::terraform
