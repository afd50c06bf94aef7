// SPDX-License-Identifier: Apache-2.0
// Tests the digest, which is the part of the provider that needs no host.
#include <cstdio>

#include "files.cpp"

int main() {
  const std::string expected = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
  const std::string found = digest(Key{"key"}, "The quick brown fox jumps over the lazy dog");
  if (found != expected) {
    std::fprintf(stderr, "digest: expected %s, found %s\n", expected.c_str(), found.c_str());
    return 1;
  }
  std::puts("unit_test: passed");
}
