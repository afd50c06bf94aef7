/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the digest, which is the part of the provider that needs no host. */
#include "files.c"

int main(void) {
  static const char expected[] = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
  static const char content[] = "The quick brown fox jumps over the lazy dog";
  const size_t size = strlen(content);
  const driftd_secret key = {(uint8_t*)"key", 3};

  /* A pipe stands for the file. */
  int ends[2];
  if (pipe(ends) != 0) return 1;
  if (write(ends[1], content, size) != (ssize_t)size) return 1;

  char found[65] = "";
  if (!digest(&key, ends[0], (off_t)size, found) || strcmp(found, expected) != 0) {
    fprintf(stderr, "digest: expected %s, found %s\n", expected, found);
    return 1;
  }
  puts("unit_test: passed");
  return 0;
}
