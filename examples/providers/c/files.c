/* SPDX-License-Identifier: Apache-2.0 */
/* A provider in C: a folder, one kind `file`. Its attribute `digest` tells that a content changed without showing it:
 * HMAC-SHA256 under a secret setting, since the plain hash of a short text can be guessed. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/hmac.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include "driftd/sdk/table.h"
enum { MOST = 16 << 20 }; /* bytes; a larger file gets no digest */
static const uint32_t EVENTS = IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE | IN_DELETE | IN_MOVE_SELF | IN_ONLYDIR;
static const char describe[] =
    "{\"id\": \"files\", \"version\": \"0.1.0\", \"types\": [\"files\"], \"kinds\": [\"file\"], \"concurrency\": 2,"
    "\"extensions\": [{\"id\": \"driftd.watch\", \"revision\": 1}], \"metrics\": []}";
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
static const driftd_host_table* host;
typedef struct Folder {
  cJSON* settings;
  const char *path, *token;
} Folder; /* not written after open */
typedef struct Look {
  driftd_secret key;
  DIR* at;
} Look;                                                                      /* what one call works with */
static driftd_status fail(const Folder* self, driftd_call call, int error) { /* the code tells the host what to do */
  char right[4096];
  snprintf(right, sizeof right, "r-x on %s", self->path);
  const driftd_status code = error == EACCES ? DRIFTD_DENIED : DRIFTD_UNAVAILABLE;
  return driftd_fail(host, call, code, error == EACCES ? right : NULL, "%s: %s", self->path, strerrordesc_np(error));
}
static driftd_status enter(const Folder* self, driftd_call call, Look* look) { /* a folder that is away is not empty */
  const driftd_status status = driftd_secret_of(host, call, self->token, &look->key);
  look->at = status == DRIFTD_OK ? opendir(self->path) : NULL;
  return status == DRIFTD_OK && look->at == NULL ? fail(self, call, errno) : status;
}
static driftd_status leave(Look* look, driftd_status status) {
  if (look->at != NULL) closedir(look->at);
  return driftd_forget(&look->key), status == DRIFTD_FINISH_SOON ? DRIFTD_OK : status;
}
static int digest(const driftd_secret* key, int file, off_t size, char* hex) { /* 0: it could not be read */
  unsigned char raw[32], *text = size <= MOST ? malloc((size_t)size + 1) : NULL;
  const ssize_t got = text == NULL ? -1 : read(file, text, (size_t)size);
  const int done = got >= 0 && HMAC(EVP_sha256(), key->data, (int)key->len, text, (size_t)got, raw, NULL) != NULL;
  for (int i = 0; done && i < 32; ++i) snprintf(hex + 2 * i, 3, "%02x", raw[i]);
  return free(text), done;
}
/* Emits one file: OK, FINISH_SOON, NOT_FOUND for what is gone or no regular file, else why the call must fail. */
static driftd_status show(const Folder* self, driftd_call call, const Look* look, const char* name) {
  if (host->cancelled(call)) return driftd_fail(host, call, DRIFTD_CANCELLED, NULL, "stopped before %s", name);
  const int64_t now = host->now();
  struct stat st = {0};
  if (fstatat(dirfd(look->at), name, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT) return fail(self, call, errno);
  if (!S_ISREG(st.st_mode)) return DRIFTD_NOT_FOUND;
  char hex[65], body[160], reason[512];
  const int file = openat(dirfd(look->at), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  const int big = st.st_size > MOST, known = file >= 0 && digest(&look->key, file, st.st_size, hex);
  if (file >= 0) close(file);
  snprintf(body, sizeof body, "{\"executable\":%s,\"size\":%lld%s%s%s}", st.st_mode & 0111 ? "true" : "false",
           (long long)st.st_size, known ? ",\"digest\":\"" : "", known ? hex : "", known ? "\"" : "");
  snprintf(reason, sizeof reason, big ? "above 16 MiB" : "grant r on %s/%s", self->path, name);
  const driftd_unread digest_is = driftd_not_read("digest", big ? DRIFTD_UNSUPPORTED : DRIFTD_DENIED, reason);
  return driftd_emit(host, call, "file", name, body, now, known ? NULL : &digest_is); /* unread: never a drift */
}
static driftd_status provider_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                                      driftd_refresh_result* result) {
  if (!driftd_wants(args, "file")) return (void)result, DRIFTD_OK;
  Look look;
  driftd_status status = enter(self, call, &look);
  uint64_t count = 0;
  for (struct dirent* next; status == DRIFTD_OK && (errno = 0, next = readdir(look.at)) != NULL;) {
    status = show(self, call, &look, next->d_name);
    count += status == DRIFTD_OK;
    if (status == DRIFTD_NOT_FOUND) status = DRIFTD_OK;
  }
  if (status == DRIFTD_OK && errno != 0) status = fail(self, call, errno);
  if (status == DRIFTD_OK) status = driftd_complete(host, call, "file", count); /* all were seen: the others are gone */
  return leave(&look, status);
}
static driftd_status provider_read(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                                   uint32_t stride) {
  Look look;
  driftd_status status = enter(self, call, &look);
  for (uint32_t i = 0; status <= DRIFTD_OK && i < count; ++i) { /* FINISH_SOON is for lists: here all are answered */
    const driftd_identity* id = driftd_identity_at(ids, stride, i);
    char name[256];
    const int is_name = driftd_c_string(id->id, name, sizeof name) && strchr(name, '/') == NULL;
    status = is_name && driftd_same(id->kind, "file") ? show(self, call, &look, name) : DRIFTD_NOT_FOUND;
    if (status == DRIFTD_NOT_FOUND) status = driftd_not_found(host, call, id);
  }
  return leave(&look, status);
}
static driftd_status provider_reachable(driftd_instance self, driftd_call call) {
  Look look;
  return leave(&look, enter(self, call, &look));
}
static driftd_status provider_watch(driftd_instance self, driftd_call call, const driftd_watch_args* args) {
  char drain[4096];
  driftd_status status = DRIFTD_OK;
  const int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  while (status == DRIFTD_OK && !host->cancelled(call)) { /* sets it each time: it may be another folder by now */
    status = inotify_add_watch(events, ((Folder*)self)->path, EVENTS) < 0 ? fail(self, call, errno) : DRIFTD_OK;
    if (status == DRIFTD_OK) status = driftd_hint(host, call); /* at first for what changed before the watch was set */
    if (status == DRIFTD_OK && driftd_wait(host, call, events)) (void)!read(events, drain, sizeof drain);
  }
  return (void)args, close(events), status;
}
static driftd_status provider_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  cJSON* json = cJSON_ParseWithLength(args->settings.data, args->settings.len);
  Folder* self = malloc(sizeof *self);
  const Folder made = {json, cJSON_GetStringValue(cJSON_GetObjectItem(json, "path")),
                       cJSON_GetStringValue(cJSON_GetObjectItem(json, "key"))};
  if (self != NULL && made.path != NULL && made.token != NULL) return *self = made, *out = self, DRIFTD_OK;
  cJSON_Delete(json), free(self);
  return driftd_fail(host, call, DRIFTD_INVALID, NULL, "settings: expected the texts `path` and `key`");
}
static void provider_close(driftd_instance self) { cJSON_Delete(((Folder*)self)->settings), free(self); }
DRIFTD_PROVIDER_IN_C()
