// SPDX-License-Identifier: Apache-2.0
#include "store/keys.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "store/files.hpp"

namespace driftd::store {
namespace {

constexpr std::string_view kTitle = "driftd installation key v1";
// a version without rotations must not read it
constexpr std::string_view kLayeredTitle = "driftd installation key v2";
constexpr std::string_view kSlowTitle = "driftd installation key v3";  // nor a version without slow layers
constexpr std::string_view kAnyTitle = "driftd installation key v";
constexpr std::size_t kMaxText = 1u << 20;

bool unhex(std::string_view text, unsigned char* out, std::size_t size) {
  if (text.size() != size * 2) return false;
  for (std::size_t i = 0; i < size; ++i) {
    const char* at = text.data() + i * 2;
    if (std::from_chars(at, at + 2, out[i], 16).ptr != at + 2) return false;
  }
  return true;
}

std::string hex_of(const Key& key) { return to_hex({reinterpret_cast<const char*>(key.data()), key.size()}); }

Status fill_random(unsigned char* out, std::size_t size) {
  if (RAND_bytes(out, static_cast<int>(size)) == 1) return {};
  return fail(Code::internal, "the system gave no random bytes for an installation key");
}

Status fill(std::string& id, Key& key) {
  unsigned char name[4];
  DRIFTD_CHECK(fill_random(key.data(), key.size()));
  DRIFTD_CHECK(fill_random(name, sizeof name));
  id = to_hex({reinterpret_cast<const char*>(name), sizeof name});
  return {};
}

/// Returns a new seed that differs from `former`.
Result<std::uint64_t> random_seed(std::uint64_t former) {
  std::uint64_t out = former;
  while (out == former) {
    unsigned char bytes[sizeof out];
    DRIFTD_CHECK(fill_random(bytes, sizeof bytes));
    std::memcpy(&out, bytes, sizeof out);
  }
  return out;
}

bool parse_pair(std::istream& in, std::string& id, Key& key) {
  std::string hex;
  in >> id >> hex;
  unsigned char bytes[4];
  const bool good = in && unhex(id, bytes, sizeof bytes) && unhex(hex, key.data(), key.size());
  OPENSSL_cleanse(hex.data(), hex.size());
  return good;
}

bool parse_named(std::istream& in, const char* expected_name, core::RedactionKey& key) {
  std::string name;
  in >> name;
  return name == expected_name && parse_pair(in, key.id, key.key);
}

bool parse_seed(std::istream& in, std::uint64_t& seed) {
  std::string hex;
  in >> hex;
  if (!in || hex.size() != 16) return false;
  return std::from_chars(hex.data(), hex.data() + 16, seed, 16).ptr == hex.data() + 16;
}

/// Returns the first line of a file with this key: that of the oldest version that understands all of it.
std::string_view title_of(const InstallationKey& key) {
  if (key.store.slow()) return kSlowTitle;
  return key.store.layers.empty() ? kTitle : kLayeredTitle;
}

Error no_key(const std::string& where) {
  return {Code::corrupt,
          where + " is not an installation key of this version; restore it from the backup that belongs to this store"};
}

Error of_newer(const std::string& where, const std::string& what) {
  return {Code::unsupported, where + " was written by a newer driftd: " + what +
                                 ", and without it no stored digest can be compared; run the "
                                 "driftd that wrote it, or a newer one"};
}

/// `layer <id> <hex> <nanoseconds>` for each rotation, `slow` for one with --slow, then `seed <hex>`.
Status parse_rest(std::istream& in, InstallationKey& key, const std::string& where) {
  std::string name;
  while (in >> name && name != "seed") {
    core::KeyLayer layer;
    Rotation rotation;
    const bool sound = parse_pair(in, layer.id, layer.key) && in >> rotation.at_ns;
    if (!sound) return fail(no_key(where));
    if (name != "layer" && name != "slow")
      return fail(of_newer(where, "it has a layer of a kind that this one does not know"));
    layer.kind = name == "slow" ? core::LayerKind::slow : core::LayerKind::hmac;
    key.store.layers.push_back(layer);
    key.rotations.push_back(rotation);
  }
  if (name == "seed" && parse_seed(in, key.digest_seed) && !(in >> name)) return {};
  return fail(no_key(where));
}

/// Returns true for the title of an unknown, newer version.
bool is_newer(const std::string& title) {
  return title.starts_with(kAnyTitle) && title != kTitle && title != kLayeredTitle && title != kSlowTitle;
}

}  // namespace

const Key& InstallationKey::for_event(std::int64_t seq) const {
  const Key* out = &store.key;
  for (std::size_t i = 0; i < store.layers.size(); ++i) {
    if (seq > rotations[i].newest_event) out = &store.layers[i].key;
  }
  return *out;
}

std::string ids_of(const InstallationKey& key) {
  std::string out = key.worker.id + " " + key.store.id;
  for (const auto& layer : key.store.layers) out += " " + layer.id;
  return out;
}

std::string ids_named(const std::string& key_ids) {
  std::istringstream words(key_ids);
  std::string out;
  for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word.substr(0, word.find('@'));
  return out;
}

std::string key_fault(const std::string& key_name, const std::string& ids, const std::string& what,
                      const std::string& stored) {
  const std::string both = " (key ids " + ids + ", " + what + " was written with " + stored + "); ";
  if (stored.starts_with(ids + " ")) {
    return key_name + " is from before a rotation" + both +
           "put the newer key in place: one that knows all of these ids";
  }
  return key_name + " belongs to another store" + both + "restore the one that belongs to it";
}

Result<InstallationKey> make_key() {
  InstallationKey key;
  DRIFTD_CHECK(fill(key.worker.id, key.worker.key));
  DRIFTD_CHECK(fill(key.store.id, key.store.key));
  DRIFTD_TRY(key.digest_seed, random_seed(0));
  return key;
}

Result<InstallationKey> rotated(InstallationKey key, Nanos now, core::LayerKind kind) {
  if (kind == core::LayerKind::slow && key.store.slow()) {
    return fail(
        Code::conflict,
        "the key has a slow layer already, and each stored digest is as slow to guess as it would be with two; rotate "
        "without --slow, that goes around it");
  }
  core::KeyLayer layer;
  layer.kind = kind;
  DRIFTD_CHECK(fill(layer.id, layer.key));
  key.store.layers.push_back(layer);
  key.rotations.push_back({now, Rotation::kNotInForce});
  DRIFTD_TRY(key.digest_seed, random_seed(key.digest_seed));
  return key;
}

std::string render(const InstallationKey& key) {
  char seed[17];
  std::snprintf(seed, sizeof seed, "%016llx", static_cast<unsigned long long>(key.digest_seed));
  std::string out(title_of(key));
  out += "\nworker " + key.worker.id + " " + hex_of(key.worker.key) + "\nstore " + key.store.id + " " +
         hex_of(key.store.key);
  for (std::size_t i = 0; i < key.store.layers.size(); ++i) {
    const auto& layer = key.store.layers[i];
    out += (layer.kind == core::LayerKind::slow ? "\nslow " : "\nlayer ") + layer.id + " " + hex_of(layer.key) + " " +
           std::to_string(key.rotations[i].at_ns);
  }
  return out + "\nseed " + seed + "\n";
}

Result<InstallationKey> parse_key(const std::string& text, const std::string& where) {
  std::istringstream in(text);
  std::string title;
  std::getline(in, title);
  InstallationKey key;
  if (text.size() > kMaxText) return fail(no_key(where));
  if (is_newer(title))
    return fail(of_newer(where, "it is of version " + title.substr(kAnyTitle.size(), 8) + ", this one knows 1 to 3"));
  if (!parse_named(in, "worker", key.worker) || !parse_named(in, "store", key.store)) return fail(no_key(where));
  DRIFTD_CHECK(parse_rest(in, key, where));
  if (title != title_of(key)) return fail(no_key(where));
  return key;
}

Result<InstallationKey> create_key(const std::filesystem::path& file) {
  DRIFTD_TRY(auto key, make_key());
  DRIFTD_CHECK(write_private(file, render(key)));
  return key;
}

Result<InstallationKey> read_key(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return fail(Code::not_found, "no " + file.string());
  DRIFTD_CHECK(check_private(file));
  std::ifstream in(file, std::ios::binary);
  if (!in) return fail(Code::denied, "cannot read " + file.string() + "; it must belong to the agent's user");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  auto key = parse_key(text, file.string());
  OPENSSL_cleanse(text.data(), text.size());
  return key;
}

}  // namespace driftd::store
