/* SPDX-License-Identifier: Apache-2.0 */
/* A provider in C. It reads a folder: each regular file in it is one resource of the kind `file`.
 * The attribute `digest` tells that the content of a file changed, but not what the content is. It is an HMAC-SHA256
 * with a secret key from the settings, because somebody could guess a short content from its plain hash. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/hmac.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include "driftd/sdk/table.h"

/* A larger file gets no digest. */
enum { MAX_BYTES = 16 << 20 };

/* The inotify events after which the agent must refresh. IN_ONLYDIR refuses a path that is not a folder. */
static const uint32_t EVENTS = IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE | IN_DELETE | IN_MOVE_SELF | IN_ONLYDIR;

/* ---- What the provider offers. The macro at the end of this file uses these names. */

/* Tells the host the provider's id, its kinds and the extensions of the ABI that it has. */
static const char describe[] =
    "{\"id\": \"files\", \"version\": \"0.1.0\", \"types\": [\"files\"], \"kinds\": [\"file\"], \"concurrency\": 2,"
    "\"extensions\": [{\"id\": \"driftd.watch\", \"revision\": 1}], \"metrics\": []}";

/* Pairs of a name and a document: the schema of the settings, then the schema of each kind. */
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

/* The functions of the host. The SDK sets this pointer before the first call. */
static const driftd_host_table* host;

/* One opened backend. It does not change after open, so its calls may run at the same time. */
typedef struct Folder {
  cJSON* settings;
  const char* path;  /* points into `settings` */
  const char* token; /* points into `settings`; stands for the secret key */
} Folder;

/* The folder and the secret key, both open for one call only. */
typedef struct OpenFolder {
  driftd_secret key;
  DIR* dir;
} OpenFolder;

/* ---- Helpers. */

/* Reports why a call fails and returns the code. The code tells the host what to do next. DENIED also names the right
 * that is missing. */
static driftd_status fail(const Folder* self, driftd_call call, int error) {
  if (error != EACCES) {
    return driftd_fail(host, call, DRIFTD_UNAVAILABLE, NULL, "%s: %s", self->path, strerrordesc_np(error));
  }
  char right[4096];
  snprintf(right, sizeof right, "r-x on %s", self->path);
  return driftd_fail(host, call, DRIFTD_DENIED, right, "%s: %s", self->path, strerrordesc_np(error));
}

/* Asks for the secret key and opens the folder. Fails if the folder cannot be opened: a missing folder is not an empty
 * one. Call end_call() afterwards, even after a failure. */
static driftd_status begin_call(const Folder* self, driftd_call call, OpenFolder* folder) {
  folder->dir = NULL;
  const driftd_status status = driftd_secret_of(host, call, self->token, &folder->key);
  if (status != DRIFTD_OK) return status;
  folder->dir = opendir(self->path);
  if (folder->dir == NULL) return fail(self, call, errno);
  return DRIFTD_OK;
}

/* Closes the folder, overwrites the key and returns the status that the call ends with. FINISH_SOON is not a failure:
 * the host wanted no more records, so only the mark COMPLETE is missing. */
static driftd_status end_call(OpenFolder* folder, driftd_status status) {
  if (folder->dir != NULL) closedir(folder->dir);
  driftd_forget(&folder->key);
  return status == DRIFTD_FINISH_SOON ? DRIFTD_OK : status;
}

/* Writes the digest of an open file into `hex`, as 64 hex digits. Returns 0 if the file cannot be read. */
static int digest(const driftd_secret* key, int file, off_t size, char* hex) {
  unsigned char* content = malloc((size_t)size + 1);
  if (content == NULL) return 0;
  unsigned char raw[32];
  const ssize_t got = read(file, content, (size_t)size);
  const int done = got >= 0 && HMAC(EVP_sha256(), key->data, (int)key->len, content, (size_t)got, raw, NULL) != NULL;
  free(content);
  if (!done) return 0;
  for (int i = 0; i < 32; ++i) snprintf(hex + 2 * i, 3, "%02x", raw[i]);
  return 1;
}

/* Opens a file of the folder and writes its digest into `hex`. Returns 0 if it cannot be read. */
static int digest_file(const OpenFolder* folder, const char* name, off_t size, char* hex) {
  const int file = openat(dirfd(folder->dir), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return 0;
  const int known = digest(&folder->key, file, size, hex);
  close(file);
  return known;
}

/* Emits one file. Returns OK or FINISH_SOON if it was emitted, NOT_FOUND if it is gone or not a regular file, and any
 * other status if the whole call must fail. */
static driftd_status emit_file(const Folder* self, driftd_call call, const OpenFolder* folder, const char* name) {
  if (host->cancelled(call)) return driftd_fail(host, call, DRIFTD_CANCELLED, NULL, "stopped before %s", name);

  /* The time must be taken before the system is asked. */
  const int64_t now = host->now();
  struct stat info;
  if (fstatat(dirfd(folder->dir), name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? DRIFTD_NOT_FOUND : fail(self, call, errno);
  }
  if (!S_ISREG(info.st_mode)) return DRIFTD_NOT_FOUND;

  char body[160];
  const char* executable = info.st_mode & 0111 ? "true" : "false";
  const long long size = (long long)info.st_size;
  char hex[65];
  const int too_big = info.st_size > MAX_BYTES;
  if (!too_big && digest_file(folder, name, info.st_size, hex)) {
    snprintf(body, sizeof body, "{\"executable\":%s,\"size\":%lld,\"digest\":\"%s\"}", executable, size, hex);
    return driftd_emit(host, call, "file", name, body, now, NULL);
  }

  /* The digest could not be made. It is emitted as unread: it counts as unknown, never as a drift. */
  snprintf(body, sizeof body, "{\"executable\":%s,\"size\":%lld}", executable, size);
  char reason[512] = "above 16 MiB";
  if (!too_big) snprintf(reason, sizeof reason, "grant r on %s/%s", self->path, name);
  const driftd_unread unread = driftd_not_read("digest", too_big ? DRIFTD_UNSUPPORTED : DRIFTD_DENIED, reason);
  return driftd_emit(host, call, "file", name, body, now, &unread);
}

/* ---- The functions of the provider. */

/* Reads the settings and fails if one is missing. The secret itself is asked for in each call that needs it. */
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

/* Frees what provider_open() made. */
static void provider_close(driftd_instance instance) {
  Folder* self = instance;
  cJSON_Delete(self->settings);
  free(self);
}

/* Lists the folder and emits each file in it. */
static driftd_status provider_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                                      driftd_refresh_result* result) {
  (void)result;
  if (!driftd_wants(args, "file")) return DRIFTD_OK;
  OpenFolder folder;
  driftd_status status = begin_call(self, call, &folder);
  uint64_t count = 0;
  while (status == DRIFTD_OK) {
    /* readdir returns NULL at the end and after an error; only an error sets errno. */
    errno = 0;
    const struct dirent* next = readdir(folder.dir);
    if (next == NULL && errno != 0) status = fail(self, call, errno);
    if (next == NULL) break;
    status = emit_file(self, call, &folder, next->d_name);
    if (status == DRIFTD_OK) ++count;
    if (status == DRIFTD_NOT_FOUND) status = DRIFTD_OK;
  }
  /* COMPLETE says that everything was listed: the host takes what is missing for deleted. So nothing may have failed.
   */
  if (status == DRIFTD_OK) status = driftd_complete(host, call, "file", count);
  return end_call(&folder, status);
}

/* Reads some resources by their identity. FINISH_SOON does not end the loop, because each of them must be answered. */
static driftd_status provider_read(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                                   uint32_t stride) {
  OpenFolder folder;
  driftd_status status = begin_call(self, call, &folder);
  for (uint32_t i = 0; i < count; ++i) {
    if (status != DRIFTD_OK && status != DRIFTD_FINISH_SOON) break;
    const driftd_identity* id = driftd_identity_at(ids, stride, i);
    char name[256];
    const int is_name = driftd_c_string(id->id, name, sizeof name) && strchr(name, '/') == NULL;
    status = DRIFTD_NOT_FOUND;
    if (is_name && driftd_same(id->kind, "file")) status = emit_file(self, call, &folder, name);
    if (status == DRIFTD_NOT_FOUND) status = driftd_not_found(host, call, id);
  }
  return end_call(&folder, status);
}

/* Checks the health: the system is up if the folder can be opened. */
static driftd_status provider_reachable(driftd_instance self, driftd_call call) {
  OpenFolder folder;
  const driftd_status status = begin_call(self, call, &folder);
  return end_call(&folder, status);
}

/* Watches the folder until the host cancels the call. Each change sends a hint, and the agent refreshes at once. */
static driftd_status provider_watch(driftd_instance instance, driftd_call call, const driftd_watch_args* args) {
  (void)args;
  const Folder* self = instance;
  const int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (events < 0) return fail(self, call, errno);
  driftd_status status = DRIFTD_OK;
  while (status == DRIFTD_OK && !host->cancelled(call)) {
    /* The watch is set each time, because the path may lead to another folder by now. */
    if (inotify_add_watch(events, self->path, EVENTS) < 0) {
      status = fail(self, call, errno);
      break;
    }
    /* The first hint is for changes before the watch was set. */
    status = driftd_hint(host, call);
    if (status != DRIFTD_OK) break;
    if (!driftd_wait(host, call, events)) break;
    /* The events are only taken out of the queue: the refresh lists the folder anyway. */
    char dropped[4096];
    const ssize_t ignored = read(events, dropped, sizeof dropped);
    (void)ignored;
  }
  close(events);
  return status;
}

/* Defines the tables of the ABI and the only exported symbol. */
DRIFTD_PROVIDER_IN_C()
