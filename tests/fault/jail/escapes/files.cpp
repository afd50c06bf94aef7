// SPDX-License-Identifier: Apache-2.0
// Attempts to read what is not the plugin's, and to write anywhere.
#include <dirent.h>
#include <fcntl.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "escapes.hpp"

namespace driftd::escapes {
namespace {

int try_create(const std::string& path) {
  const int result = try_open(path, O_WRONLY | O_CREAT);
  if (result == 0) ::unlink(path.c_str());
  return result;
}

int open_store(const Targets& to) { return try_open(to.data_dir + "/driftd.db", O_RDONLY); }
int open_key(const Targets& to) { return try_open(to.data_dir + "/installation.key", O_RDONLY); }
int list_data(const Targets& to) {
  DIR* const folder = ::opendir(to.data_dir.c_str());
  if (folder == nullptr) return errno;
  ::closedir(folder);
  return 0;
}
int open_shadow(const Targets&) { return try_open("/etc/shadow", O_RDONLY); }
int open_fstab(const Targets&) { return try_open("/etc/fstab", O_RDONLY); }
int open_store_by_own_root(const Targets& to) {
  return try_open("/proc/self/root" + to.data_dir + "/driftd.db", O_RDONLY);
}
int open_key_by_own_cwd(const Targets& to) {
  return try_open("/proc/self/cwd/../../../../../../../../../.." + to.data_dir + "/installation.key", O_RDONLY);
}
int open_kernel_log(const Targets&) { return try_open("/dev/kmsg", O_RDONLY); }

int write_tmp(const Targets&) { return try_create("/tmp/driftd-escape"); }
int write_cwd(const Targets&) { return try_create("driftd-escape"); }
int write_root(const Targets&) { return try_create("/driftd-escape"); }
int write_shm(const Targets&) { return try_create("/dev/shm/driftd-escape"); }
int write_var(const Targets&) { return try_create("/var/tmp/driftd-escape"); }
int write_srv(const Targets&) { return try_create("/srv/driftd-escape"); }
int write_etc(const Targets&) { return try_create("/etc/driftd-escape"); }
int write_data(const Targets& to) { return try_create(to.data_dir + "/escape"); }
int write_plugins(const Targets& to) { return try_create(to.plugin_folder + "/other.so"); }
int write_unnamed(const Targets& to) { return try_open(to.outside, O_WRONLY | O_TMPFILE); }
int write_library(const Targets& to) { return reached(::open(to.own_library.c_str(), O_WRONLY | O_CLOEXEC), ETXTBSY); }
int truncate_library(const Targets& to) { return reached(::truncate(to.own_library.c_str(), 1 << 20), ETXTBSY); }
int truncate_by_open(const Targets& to) { return try_open(to.outside + "/emptied", O_RDONLY | O_TRUNC); }
int append_store(const Targets& to) { return try_open(to.data_dir + "/driftd.db", O_WRONLY | O_APPEND); }
int write_own_memory(const Targets&) { return try_open("/proc/self/mem", O_RDWR); }
int write_sysctl(const Targets&) { return try_open("/proc/sys/kernel/core_pattern", O_WRONLY); }
int write_sysfs(const Targets&) { return try_open("/sys/kernel/mm/transparent_hugepage/enabled", O_WRONLY); }
int write_oom(const Targets&) { return try_open("/proc/self/oom_score_adj", O_WRONLY); }

int watch_store(const Targets& to) {
  const int watcher = ::inotify_init1(IN_CLOEXEC);
  if (watcher < 0) return errno;
  const int result = outcome(::inotify_add_watch(watcher, to.data_dir.c_str(), IN_ALL_EVENTS));
  ::close(watcher);
  return result;
}
int watch_all_folders(const Targets&) { return outcome(::syscall(SYS_fanotify_init, FAN_CLASS_NOTIF, O_RDONLY)); }

/// `struct file_handle` with room for the handle.
struct Handle {
  unsigned bytes = 64;
  int type = 0;
  unsigned char data[64] = {};
};
int get_handle(const Targets& to) {
  Handle handle;
  int mount = 0;
  return outcome(::syscall(SYS_name_to_handle_at, AT_FDCWD, to.outside.c_str(), &handle, &mount, 0));
}
int open_handle(const Targets&) {
  Handle handle;
  const int any = ::open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (any < 0) return errno;
  const int got = outcome(::syscall(SYS_open_by_handle_at, any, &handle, O_RDONLY));
  ::close(any);
  return got == ESTALE || got == EINVAL ? 0 : got;  // the call got through; only the handle is invalid
}

}  // namespace

std::vector<Attempt> file_attempts() {
  return {{"open the store", open_store},
          {"open the installation key", open_key},
          {"list data_dir", list_data},
          {"open /etc/shadow", open_shadow, true},
          {"open /etc/fstab", open_fstab},
          {"store by /proc/self/root", open_store_by_own_root},
          {"key by /proc/self/cwd", open_key_by_own_cwd},
          {"open /dev/kmsg", open_kernel_log, true, true},
          {"write in /tmp", write_tmp},
          {"write in the working folder", write_cwd, true},
          {"write in /", write_root, true},
          {"write in /dev/shm", write_shm, false, true},
          {"write in /var/tmp", write_var},
          {"write in /srv", write_srv, true},
          {"write in /etc", write_etc, true},
          {"write in data_dir", write_data},
          {"write in the plugin folder", write_plugins},
          {"O_TMPFILE", write_unnamed, false, true},
          {"open its own .so for writing", write_library},
          {"truncate its own .so", truncate_library},
          {"truncate by open", truncate_by_open},
          {"append to the store", append_store},
          {"write its memory by /proc", write_own_memory},
          {"write a sysctl", write_sysctl, true},
          {"write in /sys", write_sysfs, true, true},
          {"oom_score_adj of itself", write_oom},
          {"inotify on data_dir", watch_store},
          {"fanotify", watch_all_folders, true, true},
          {"name_to_handle_at", get_handle, false, true},
          {"open_by_handle_at", open_handle, true, true}};
}

}  // namespace driftd::escapes
