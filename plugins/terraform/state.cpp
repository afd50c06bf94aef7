// SPDX-License-Identifier: Apache-2.0
#include "terraform/state.hpp"

#include <openssl/evp.h>
#include <memory>
#include <unordered_set>

#include "driftd/sdk/types.hpp"
#include "terraform/document.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxFailing = 20;

/// `module.m.aws_x.y["k"]`, `data.aws_x.y[0]`.
std::string address_of(const json& resource, const json& instance) {
  std::string out = text_of(resource, "module");
  if (!out.empty()) out += ".";
  if (text_of(resource, "mode") == "data") out += "data.";
  out += text_of(resource, "type") + "." + text_of(resource, "name");
  const auto key = instance.find("index_key");
  if (key == instance.end() || key->is_null()) return out;
  if (!key->is_string() && !key->is_number_integer()) corrupt(out + ": index_key is neither text nor a whole number");
  return out + "[" + key->dump() + "]";
}

void check_resource(const json& resource) {
  const std::string mode = text_of(resource, "mode"), type = text_of(resource, "type"),
                    name = text_of(resource, "name");
  if (type.empty() || name.empty()) corrupt("resources: an entry without type or name");
  if (mode != "managed" && mode != "data") corrupt("resources: " + type + "." + name + ": unknown mode '" + mode + "'");
}

const json& attributes_of(const json& instance, const std::string& address) {
  static const json kNone = json::object();
  for (const char* key : {"attributes", "attributes_flat"}) {
    const auto found = instance.find(key);
    if (found == instance.end() || found->is_null()) continue;
    if (!found->is_object()) corrupt(address + ": '" + key + "' is not an object");
    return *found;
  }
  return kNone;
}

bool take_top(const std::string& key, const json& value, Head& out) {
  if (key == "version") {
    if (!value.is_number_integer()) corrupt("the state file's 'version' is no whole number");
    out.version = value.is_number_unsigned() && value.get<std::uint64_t>() < 1000 ? value.get<int>() : 1000;
  }
  if (key == "serial") out.serial = scalar_text(value);
  if (key == "lineage") out.lineage = scalar_text(value);
  if (key == "terraform_version") out.terraform_version = scalar_text(value);
  return true;
}

/// SHA-256, cut to 64 bits: a cursor holds it, and a cursor must not reveal anything of a secret.
class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(const json& value) {
    const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    EVP_DigestUpdate(context_.get(), text.data(), text.size());
  }
  std::string take() {
    unsigned char sum[EVP_MAX_MD_SIZE];
    EVP_DigestFinal_ex(context_.get(), sum, nullptr);
    std::string out;
    for (int i = 0; i < 8; ++i) {
      out += "0123456789abcdef"[sum[i] >> 4];
      out += "0123456789abcdef"[sum[i] & 15];
    }
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

class HeadReader final : public DocumentVisitor {
 public:
  bool top(const std::string& key, const json& value) override { return take_top(key, value, head); }
  bool encrypted() override {
    head.encrypted = true;  // the rest is one long text; reading goes on only for members behind it
    return head.lineage.empty() || head.serial == "0";
  }
  bool output(const std::string& name, const json& output) override {
    digest.add(name);
    digest.add(output);
    return ++head.outputs, true;
  }
  bool check(const json& check) override {
    const std::string status = text_of(check, "status");
    ++head.checks[status.empty() ? "unknown" : status];
    if (status == "fail" && head.failing.size() < kMaxFailing) head.failing.push_back(text_of(check, "config_addr"));
    return true;
  }
  bool instance(const json& resource, const json& instance) override {
    check_resource(resource);
    const std::string address = address_of(resource, instance), deposed = text_of(instance, "deposed");
    (void)attributes_of(instance, address);
    if (text_of(resource, "mode") == "data") return ++head.data, true;
    ++(deposed.empty() ? head.managed : head.deposed);
    if (!seen_.insert(address + " " + deposed).second) corrupt(address + ": stands twice in the state");
    digest.add(address);
    digest.add(instance);
    return true;
  }
  Head head;
  Digest digest;

 private:
  std::unordered_set<std::string> seen_;
};

class ContentsReader final : public DocumentVisitor {
 public:
  explicit ContentsReader(StateVisitor& to) : to_(to) {}
  bool top(const std::string&, const json&) override { return true; }
  bool encrypted() override { return false; }
  bool output(const std::string& name, const json& output) override { return to_.output(name, output); }
  bool check(const json&) override { return true; }
  bool instance(const json& resource, const json& instance) override {
    if (text_of(resource, "mode") != "managed") return true;
    const std::string address = address_of(resource, instance);
    return to_.instance({resource, instance, attributes_of(instance, address), text_of(resource, "type"), address,
                         text_of(instance, "deposed")});
  }

 private:
  StateVisitor& to_;
};

class Peek final : public DocumentVisitor {
 public:
  bool top(const std::string& key, const json& value) override { return take_top(key, value, head); }
  bool encrypted() override { return false; }
  bool output(const std::string&, const json&) override { return true; }
  bool check(const json&) override { return true; }
  bool instance(const json&, const json&) override { return false; }
  Head head;
};

}  // namespace

std::string Instance::id() const { return deposed.empty() ? address : address + " (deposed " + deposed + ")"; }

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Head read_head(const Spool& state) {
  if (state.size() == 0) corrupt("the state file is empty");
  HeadReader reader;
  walk(state, reader);
  Head& head = reader.head;
  if (head.encrypted) {
    head.version = 0;
    return std::move(head);
  }
  if (head.version == 0) corrupt("the state file has no 'version'");
  if (head.version > 4) {
    throw sdk::Failure(DRIFTD_UNSUPPORTED, "state format version " +
                                               (head.version == 1000 ? "unknown" : std::to_string(head.version)) +
                                               "; this provider reads versions 1 to 4");
  }
  if (head.version < 4) {
    const json document = parse_whole(state);
    legacy_head(document, head);
    reader.digest.add(document);
  } else if (head.lineage.empty()) {
    corrupt("the state file has no 'lineage'");
  }
  head.digest = reader.digest.take();
  return std::move(head);
}

Head peek(std::string_view beginning) {
  Peek reader;
  try {
    Spool spool;
    spool.write(beginning);
    spool.finish();
    walk(spool, reader);
  } catch (const std::exception&) {  // it is only a part: what was seen until then is all there is
  }
  return std::move(reader.head);
}

void read_contents(const Spool& state, const Head& head, StateVisitor& to) {
  if (head.encrypted) return;
  if (head.version < 4) return legacy_contents(parse_whole(state), to);
  ContentsReader reader(to);
  walk(state, reader);
}

}  // namespace driftd::terraform
