/* SPDX-License-Identifier: Apache-2.0 */
/* What Go cannot express: calls through function pointers, structs with pointers into Go, the exported table. Go calls
 * the functions declared here; driftd.c defines them with the host's functions. */
#ifndef DRIFTD_GO_H
#define DRIFTD_GO_H

#include "driftd/sdk/call.h"

/* A text that ends with NUL. It is borrowed: the callee must not use it after it returned. */
typedef const char go_text;

/* Emits one record. `path`, `code` and `reason` describe the attribute that was not read; `path` is NULL if there is
 * none. */
driftd_status go_emit(driftd_call call, go_text* kind, go_text* id, go_text* body, int64_t observed_ns, go_text* path,
                      driftd_status code, go_text* reason);
driftd_status go_mark(driftd_call call, uint32_t type, go_text* kind, go_text* cursor, uint64_t count);
void go_diag(driftd_call call, driftd_status code, go_text* kind, go_text* id, go_text* text, go_text* right);

/* Copies the secret of a token into `out`. driftd_forget() must release it, also after a failure. */
driftd_status go_secret(driftd_call call, go_text* token, driftd_secret* out);

/* Returns 1 if `fd` is readable, 0 if the host wants the call to end. */
int go_wait(driftd_call call, int fd);
int go_cancelled(driftd_call call);
int64_t go_now(void);

/* Calls the host's driftd_push_fn `push` with a text of `len` bytes. */
void go_push(void* push, void* user, go_text* text, uint64_t len);

#endif /* DRIFTD_GO_H */
