/* SPDX-License-Identifier: Apache-2.0 */
/* What Go cannot express: function pointers, structs with pointers into Go, the exported table. See driftd.go. */
#ifndef DRIFTD_GO_H
#define DRIFTD_GO_H

#include "driftd/sdk/call.h"

typedef const char go_text; /* the callee may use it until it returns */

driftd_status go_emit(driftd_call call, go_text* kind, go_text* id, go_text* body, int64_t observed_ns, go_text* path,
                      driftd_status code, go_text* reason); /* path is NULL if every attribute was read */
driftd_status go_mark(driftd_call call, uint32_t type, go_text* kind, go_text* cursor, uint64_t count);
void go_diag(driftd_call call, driftd_status code, go_text* kind, go_text* id, go_text* text, go_text* right);
driftd_status go_secret(driftd_call call, go_text* token, driftd_secret* out);
int go_wait(driftd_call call, int fd);
int go_cancelled(driftd_call call);
int64_t go_now(void);
void go_push(void* push, void* user, go_text* text, uint64_t len);

#endif /* DRIFTD_GO_H */
