/* SPDX-License-Identifier: Apache-2.0 */
/* A provider in C. It shows a folder: each regular file in it is one resource of the kind `file`.
 * The attribute `digest` shows that a content changed without showing the content. It is an HMAC-SHA256 under a secret
 * setting, because the plain hash of a short text can be guessed. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/hmac.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include "driftd/sdk/table.h"

/* Bytes. A larger file gets no digest. */
enum { MAX_SIZE = 16 << 20 };

/* The changes of the folder that make the agent refresh. */
static const uint32_t EVENTS = IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE | IN_DELETE | IN_MOVE_SELF | IN_ONLYDIR;

/* ---- What the provider offers: read by the SDK's table at the end of this file. */

static const char describe[] =
    "{\"id\": \"files\", \"version\": \"0.1.0\", \"types\": [\"files\"], \"kinds\": [\"file\"], \"concurrency\": 2,"
    "\"extensions\": [{\"id\": \"driftd.watch\", \"revision\": 1}], \"metrics\": []}";

/* The schema of the settings, then the schema of each kind. */
static const char* const documents[] = {
    "settings",
    "{\"type\": \"object\", \"required\": [\"path\", \"key\"], \"additionalProperties\": false, \"properties\": {"
    "\"path\": {\"type\": \"string\", \"format\": \"path\", \"description\": \"the folder\"},"
    "\"key\": {\"type\": \"string\", \"writeOnly\": true, \"description\": \"key of the digests\"}}}",
    "file",
    "{\"schema\": \"driftd-schema/1\", \"kind\": \"file\", \"revision\": 1, \"class\": \"config\", \"title\": \"a "
    "file\", \"attributes\":"
    "{\"executable\": {\"type\": \"bool\"}, \"size\": {\"type\": \"int\"}, \"digest\": {\"type\": \"string\"}}}",
    NULL};

/* The functions of the host. The SDK sets it before the first call. */
static const driftd_host_table* host;

/* One opened backend. It does not change after open, so its calls may run at the same time. */
typedef struct Folder {
  cJSON* settings;
  const char* path;  /* part of `settings` */
  const char* token; /* part of `settings`: stands for the secret */
} Folder;

/* What one call works with. */
typedef struct Listing {
  driftd_secret key;
  DIR* dir;
} Listing;

/* ---- Helpers. */

/* Reports why a call fails. The code tells the host what to do next; a missing right is named. */
static driftd_status fail(const Folder* self, driftd_call call, int error) {
  if (error != EACCES) {
    return driftd_fail(host, call, DRIFTD_UNAVAILABLE, NULL, "%s: %s", self->path, strerrordesc_np(error));
  }
  char right[4096];
  snprintf(right, sizeof right, "r-x on %s", self->path);
  return driftd_fail(host, call, DRIFTD_DENIED, right, "%s: %s", self->path, strerrordesc_np(error));
}

/* Asks for the secret and opens the folder. Fails if the folder cannot be opened: a missing folder is not an empty one.
 * Must be followed by finish(), also after a failure. */
static driftd_status begin(const Folder* self, driftd_call call, Listing* listing) {
  listing->dir = NULL;
  const driftd_status status = driftd_secret_of(host, call, self->token, &listing->key);
  if (status != DRIFTD_OK) return status;
  listing->dir = opendir(self->path);
  if (listing->dir == NULL) return fail(self, call, errno);
  return DRIFTD_OK;
}

/* Closes the folder, forgets the secret and returns the status of the call. A call that the host asked to finish soon
 * ends well: only its kind is not complete. */
static driftd_status finish(Listing* listing, driftd_status status) {
  if (listing->dir != NULL) closedir(listing->dir);
  driftd_forget(&listing->key);
  return status == DRIFTD_FINISH_SOON ? DRIFTD_OK : status;
}

/* Writes the digest of an open file as 64 hex digits. Returns 0 if the file cannot be read. */
static int digest(const driftd_secret* key, int file, off_t size, char* hex) {
  unsigned char* text = malloc((size_t)size + 1);
  if (text == NULL) return 0;
  unsigned char raw[32];
  const ssize_t got = read(file, text, (size_t)size);
  const int done = got >= 0 && HMAC(EVP_sha256(), key->data, (int)key->len, text, (size_t)got, raw, NULL) != NULL;
  free(text);
  if (!done) return 0;
  for (int i = 0; i < 32; ++i) snprintf(hex + 2 * i, 3, "%02x", raw[i]);
  return 1;
}

/* Reads a file of the folder and writes its digest. Returns 0 if it cannot be read. */
static int digest_of(const Listing* listing, const char* name, off_t size, char* hex) {
  const int file = openat(dirfd(listing->dir), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return 0;
  const int known = digest(&listing->key, file, size, hex);
  close(file);
  return known;
}

/* Emits one file. Returns OK or FINISH_SOON if it was emitted, NOT_FOUND if it is gone or not a regular file, and any
 * other status if the whole call must fail. */
static driftd_status show(const Folder* self, driftd_call call, const Listing* listing, const char* name) {
  if (host->cancelled(call)) return driftd_fail(host, call, DRIFTD_CANCELLED, NULL, "stopped before %s", name);

  /* The time must be taken before the system is asked. */
  const int64_t now = host->now();
  struct stat st = {0};
  if (fstatat(dirfd(listing->dir), name, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT) {
    return fail(self, call, errno);
  }
  if (!S_ISREG(st.st_mode)) return DRIFTD_NOT_FOUND;

  char body[160];
  const char* executable = st.st_mode & 0111 ? "true" : "false";
  const long long size = (long long)st.st_size;
  char hex[65];
  const int too_big = st.st_size > MAX_SIZE;
  if (!too_big && digest_of(listing, name, st.st_size, hex)) {
    snprintf(body, sizeof body, "{\"executable\":%s,\"size\":%lld,\"digest\":\"%s\"}", executable, size, hex);
    return driftd_emit(host, call, "file", name, body, now, NULL);
  }

  /* The digest exists but is not known. It is emitted as unread, which is never a drift. */
  snprintf(body, sizeof body, "{\"executable\":%s,\"size\":%lld}", executable, size);
  char reason[512] = "above 16 MiB";
  if (!too_big) snprintf(reason, sizeof reason, "grant r on %s/%s", self->path, name);
  const driftd_unread unread = driftd_not_read("digest", too_big ? DRIFTD_UNSUPPORTED : DRIFTD_DENIED, reason);
  return driftd_emit(host, call, "file", name, body, now, &unread);
}

/* ---- The functions of the provider. */

/* Reads the settings. Without them it opens nothing. The secret is asked for in the calls that need it. */
static driftd_status provider_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  cJSON* settings = cJSON_ParseWithLength(args->settings.data, args->settings.len);
  const char* path = cJSON_GetStringValue(cJSON_GetObjectItem(settings, "path"));
  const char* token = cJSON_GetStringValue(cJSON_GetObjectItem(settings, "key"));
  const int complete = path != NULL && path[0] != '\0' && token != NULL && token[0] != '\0';
  Folder* self = complete ? malloc(sizeof *self) : NULL;
  if (self == NULL) {
    cJSON_Delete(settings);
    if (complete) return driftd_fail(host, call, DRIFTD_INTERNAL, NULL, "out of memory");
    return driftd_fail(host, call, DRIFTD_INVALID, NULL, "settings: expected the texts `path` and `key`");
  }
  self->settings = settings;
  self->path = path;
  self->token = token;
  *out = self;
  return DRIFTD_OK;
}

static void provider_close(driftd_instance instance) {
  Folder* self = instance;
  cJSON_Delete(self->settings);
  free(self);
}

/* Lists the folder. */
static driftd_status provider_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                                      driftd_refresh_result* result) {
  (void)result;
  if (!driftd_wants(args, "file")) return DRIFTD_OK;
  Listing listing;
  driftd_status status = begin(self, call, &listing);
  uint64_t count = 0;
  while (status == DRIFTD_OK) {
    errno = 0; /* readdir returns NULL at the end and for an error, which also sets errno */
    const struct dirent* next = readdir(listing.dir);
    if (next == NULL && errno != 0) status = fail(self, call, errno);
    if (next == NULL) break;
    status = show(self, call, &listing, next->d_name);
    if (status == DRIFTD_OK) ++count;
    if (status == DRIFTD_NOT_FOUND) status = DRIFTD_OK;
  }
  /* Everything was listed. The host takes what is missing for deleted, so nothing may have failed before. */
  if (status == DRIFTD_OK) status = driftd_complete(host, call, "file", count);
  return finish(&listing, status);
}

/* Reads some resources by their identity. Each must be answered, so FINISH_SOON does not end the loop. */
static driftd_status provider_read(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                                   uint32_t stride) {
  Listing listing;
  driftd_status status = begin(self, call, &listing);
  for (uint32_t i = 0; i < count; ++i) {
    if (status != DRIFTD_OK && status != DRIFTD_FINISH_SOON) break;
    const driftd_identity* id = driftd_identity_at(ids, stride, i);
    char name[256];
    const int is_name = driftd_c_string(id->id, name, sizeof name) && strchr(name, '/') == NULL;
    status = DRIFTD_NOT_FOUND;
    if (is_name && driftd_same(id->kind, "file")) status = show(self, call, &listing, name);
    if (status == DRIFTD_NOT_FOUND) status = driftd_not_found(host, call, id);
  }
  return finish(&listing, status);
}

/* Health: the system is up if the folder can be opened. */
static driftd_status provider_reachable(driftd_instance self, driftd_call call) {
  Listing listing;
  const driftd_status status = begin(self, call, &listing);
  return finish(&listing, status);
}

/* Watches the folder until the host cancels the call. Each change sends a hint, and the agent refreshes at once. */
static driftd_status provider_watch(driftd_instance instance, driftd_call call, const driftd_watch_args* args) {
  (void)args;
  const Folder* self = instance;
  const int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  driftd_status status = DRIFTD_OK;
  while (status == DRIFTD_OK && !host->cancelled(call)) {
    /* The watch is set each time, because the path may lead to another folder by now. */
    if (inotify_add_watch(events, self->path, EVENTS) < 0) {
      status = fail(self, call, errno);
      break;
    }
    /* The first hint is for changes before the watch was set. */
    status = driftd_hint(host, call);
    if (status != DRIFTD_OK || !driftd_wait(host, call, events)) continue;
    char drain[4096];
    (void)!read(events, drain, sizeof drain);
  }
  close(events);
  return status;
}

/* Defines the tables and the only exported symbol. */
DRIFTD_PROVIDER_IN_C()
