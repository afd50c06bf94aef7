// SPDX-License-Identifier: Apache-2.0
#include "store/keys.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "store/files.hpp"

namespace driftd::store {
namespace {

constexpr std::string_view kTitle = "driftd installation key v1";

bool unhex(std::string_view text, unsigned char* out, std::size_t size) {
  if (text.size() != size * 2) return false;
  for (std::size_t i = 0; i < size; ++i) {
    const char* at = text.data() + i * 2;
    if (std::from_chars(at, at + 2, out[i], 16).ptr != at + 2) return false;
  }
  return true;
}

std::string hex_of(const Key& key) { return to_hex({reinterpret_cast<const char*>(key.data()), key.size()}); }

std::string render_key(const InstallationKey& key) {
  char seed[17];
  std::snprintf(seed, sizeof seed, "%016llx", static_cast<unsigned long long>(key.digest_seed));
  return std::string(kTitle) + "\nworker " + key.worker.id + " " + hex_of(key.worker.key) + "\nstore " + key.store.id +
         " " + hex_of(key.store.key) + "\nseed " + seed + "\n";
}

bool parse_key(std::istream& in, core::RedactionKey& key, const std::string& expected_name) {
  std::string name, hex;
  in >> name >> key.id >> hex;
  unsigned char id[4];
  const bool good =
      in && name == expected_name && unhex(key.id, id, sizeof id) && unhex(hex, key.key.data(), key.key.size());
  OPENSSL_cleanse(hex.data(), hex.size());
  return good;
}

bool parse_seed(std::istream& in, std::uint64_t& seed) {
  std::string name, hex;
  in >> name >> hex;
  if (!in || name != "seed" || hex.size() != 16) return false;
  return std::from_chars(hex.data(), hex.data() + 16, seed, 16).ptr == hex.data() + 16;
}

}  // namespace

Result<InstallationKey> create_key(const std::filesystem::path& file) {
  unsigned char random[2 * 32 + 2 * 4 + 8];
  if (RAND_bytes(random, sizeof random) != 1)
    return fail(Code::internal, "the system gave no random bytes for " + file.string());
  InstallationKey key;
  std::memcpy(key.worker.key.data(), random, 32);
  std::memcpy(key.store.key.data(), random + 32, 32);
  key.worker.id = to_hex({reinterpret_cast<const char*>(random + 64), 4});
  key.store.id = to_hex({reinterpret_cast<const char*>(random + 68), 4});
  std::memcpy(&key.digest_seed, random + 72, 8);
  OPENSSL_cleanse(random, sizeof random);
  DRIFTD_CHECK(write_private(file, render_key(key)));
  return key;
}

Result<InstallationKey> read_key(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return fail(Code::not_found, "no " + file.string());
  DRIFTD_CHECK(check_private(file));
  std::ifstream in(file);
  if (!in) return fail(Code::denied, "cannot read " + file.string() + "; it must belong to the agent's user");
  std::string title;
  std::getline(in, title);
  InstallationKey key;
  if (title != kTitle || !parse_key(in, key.worker, "worker") || !parse_key(in, key.store, "store") ||
      !parse_seed(in, key.digest_seed)) {
    return fail(Code::corrupt, file.string() +
                                   " is not an installation key of this version; restore it from the backup "
                                   "that belongs to this store");
  }
  return key;
}

}  // namespace driftd::store
