/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into the agent: ends or stops it at one chosen commit. The file named by DRIFTD_AT_SYNC holds a word and a
 * number, `kill_before 3`: at the third sync of the store's log from now on, the process gets SIGKILL before it, or
 * after it (`kill_after`), or SIGSTOP after it (`stop_after`). Without the file nothing happens.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_store_log(int fd) {
  char link[64], name[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, name, sizeof name - 1);
  if (size < 4) return 0;
  name[size] = 0;
  return strcmp(name + size - 4, "-wal") == 0;
}

/* Returns the word if this sync is the chosen one, and counts it otherwise. */
static int is_chosen(int fd, char word[16]) {
  const char* path = getenv("DRIFTD_AT_SYNC");
  if (path == NULL || !is_store_log(fd)) return 0;
  FILE* file = fopen(path, "r+");
  if (file == NULL) return 0;
  int left = 0;
  const int found = fscanf(file, "%15s %d", word, &left) == 2;
  if (found && left > 1) {
    rewind(file);
    fprintf(file, "%s %d\n", word, left - 1);
  }
  fclose(file);
  if (!found || left != 1) return 0;
  unlink(path);
  return 1;
}

static int synced(int fd, const char* name) {
  char word[16];
  const int chosen = is_chosen(fd, word);
  if (chosen && strcmp(word, "kill_before") == 0) raise(SIGKILL);
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  const int result = real(fd);
  if (chosen && strcmp(word, "kill_after") == 0) raise(SIGKILL);
  if (chosen && strcmp(word, "stop_after") == 0) kill(getpid(), SIGSTOP);
  return result;
}

int fdatasync(int fd) { return synced(fd, "fdatasync"); }
int fsync(int fd) { return synced(fd, "fsync"); }
