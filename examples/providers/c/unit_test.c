/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the part that needs no host. */
#include "files.c"

int main(void) {
  static const char fox[] = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
  static const char text[] = "The quick brown fox jumps over the lazy dog";
  const driftd_secret key = {(uint8_t*)"key", 3};
  char hex[65] = "";
  int ends[2];
  if (pipe(ends) != 0 || write(ends[1], text, strlen(text)) != (ssize_t)strlen(text)) return 1;
  if (!digest(&key, ends[0], (off_t)strlen(text), hex) || strcmp(hex, fox) != 0) {
    fprintf(stderr, "digest: expected %s, found %s\n", fox, hex);
    return 1;
  }
  puts("unit_test: passed");
  return 0;
}
