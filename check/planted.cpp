// SPDX-License-Identifier: Apache-2.0
#include "check/planted.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "check/fuzz.hpp"
#include "check/random.hpp"
#include "ipc/settings_schema.hpp"

namespace driftd::check {

std::vector<SecretSettings> secret_settings(const Subject& subject, const std::string& settings_schema,
                                            const char* id) {
  auto random = random_of(subject, id);
  std::vector<SecretSettings> out;
  SecretSettings planted{subject.settings_json, {}};
  if (!subject.secrets.empty()) {
    out.push_back({subject.settings_json, subject.secrets});
    for (const auto& [token, bytes] : subject.secrets) planted.secrets[token] = "wrong-" + random_word(random, 20);
  } else {
    planted.settings = plant_tokens(settings_schema, subject.settings_json, random, planted.secrets);
    if (planted.secrets.empty()) throw CheckNotApplicable("has no sensitive setting");
    const auto errors = ipc::validate_settings(settings_schema, planted.settings);
    if (!errors || !errors->empty()) {
      throw CheckNotMade("secrets could not be planted into its sensitive settings; give settings with one");
    }
  }
  out.push_back(std::move(planted));
  return out;
}

void deliver_on_own_page(const std::string& bytes, driftd_use_fn use, void* user) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t size = (bytes.size() / page + 1) * page;
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    throw CheckNotMade(fmt::format("no memory for the bytes of a secret: {}", std::strerror(errno)));
  std::memcpy(at, bytes.data(), bytes.size());
  (void)::mprotect(at, size, PROT_READ);
  use(user, static_cast<const std::uint8_t*>(at), bytes.size());
  (void)::mprotect(at, size, PROT_NONE);  // never unmapped, so that nothing else is placed here
}

}  // namespace driftd::check
