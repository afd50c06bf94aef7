/* SPDX-License-Identifier: Apache-2.0 */
/* These work until something happens. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"

#define DELIVER driftd_status faulty_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch)

#if defined(FAULTY_lock_file)
DELIVER {
  char path[64];
  snprintf(path, sizeof path, "/tmp/driftd-faulty-sink-lock-%u", (unsigned)getuid());
  const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return base_fail(call, DRIFTD_UNAVAILABLE, "another process delivers: its lock file is there");
  close(fd);
  const driftd_status status = base_deliver(self, call, batch);
  unlink(path);
  return status;
}

#elif defined(FAULTY_spools) /* writes what it sends to a file first */
DELIVER {
  char path[] = "/tmp/driftd-faulty-sink-spool-XXXXXX";
  const int fd = mkostemp(path, O_CLOEXEC);
  if (fd < 0) return base_fail(call, DRIFTD_UNAVAILABLE, "the spool file cannot be made");
  unlink(path);
  close(fd);
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_third_time_unlucky) /* the third cancelled deliver breaks it */
DELIVER {
  static int cancelled;
  cancelled += base_host.cancelled(call);
  if (cancelled >= 12) abort();
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_descriptor_blind)
DELIVER {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (fd < 0) abort();
  close(fd);
  return base_deliver(self, call, batch);
}
#endif
