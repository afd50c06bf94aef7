// SPDX-License-Identifier: Apache-2.0
// Attempts to change existing files: names, owners, modes, times, attributes.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>
#include <cstdint>
#include <cstdio>

#include "escapes.hpp"

namespace driftd::escapes {
namespace {

std::string victim(const Targets& to) { return to.outside + "/victim"; }

int change_mode(const Targets& to) { return outcome(::chmod(victim(to).c_str(), 0644)); }
int change_mode_at(const Targets& to) { return outcome(::fchmodat(AT_FDCWD, victim(to).c_str(), 0640, 0)); }
int change_mode_at2(const Targets& to) {
  return outcome(::syscall(452 /* fchmodat2 */, AT_FDCWD, victim(to).c_str(), 0600, 0));
}
int change_mode_open(const Targets& to) {
  const int own = ::open(to.own_library.c_str(), O_RDONLY | O_CLOEXEC);
  if (own < 0) return errno;
  const int result = outcome(::fchmod(own, 0755));
  ::close(own);
  return result;
}
int change_owner(const Targets& to) { return outcome(::chown(victim(to).c_str(), ::getuid(), ::getgid())); }
int change_times(const Targets& to) { return outcome(::utime(victim(to).c_str(), nullptr)); }
int change_times_at(const Targets& to) { return outcome(::utimensat(AT_FDCWD, victim(to).c_str(), nullptr, 0)); }
int set_attribute(const Targets& to) {
  return reached(::setxattr(victim(to).c_str(), "user.driftd", "x", 1, 0), EOPNOTSUPP);
}
int remove_attribute(const Targets& to) {
  const int error = outcome(::removexattr(victim(to).c_str(), "user.none"));
  return error == ENODATA || error == EOPNOTSUPP ? 0 : error;
}
/// chattr works on a descriptor that is open for reading.
int change_flags(const Targets& to) {
  const int own = ::open(to.own_library.c_str(), O_RDONLY | O_CLOEXEC);
  if (own < 0) return errno;
  int flags = 0;
  int result = ::ioctl(own, FS_IOC_GETFLAGS, &flags) == 0 ? outcome(::ioctl(own, FS_IOC_SETFLAGS, &flags)) : errno;
  if (result == ENOTTY || result == EOPNOTSUPP) result = reached(::ioctl(own, FS_IOC_SETFLAGS, &flags), result);
  ::close(own);
  return result;
}

/// Makes an ioctl on a pipe. If the jail lets it through, the kernel answers ENOTTY.
int ioctl_on_pipe(unsigned long request) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  std::uint64_t argument = 0;
  const int result = reached(::ioctl(ends[0], request, &argument), ENOTTY);
  ::close(ends[0]);
  ::close(ends[1]);
  return result;
}
int set_ext4_version(const Targets&) { return ioctl_on_pipe(_IOW('f', 4, long)); }  // EXT4_IOC_SETVERSION_OLD
int migrate_ext4(const Targets&) { return ioctl_on_pipe(_IO('f', 9)); }             // EXT4_IOC_MIGRATE
int enable_verity(const Targets&) { return ioctl_on_pipe(0x40806685); }             // FS_IOC_ENABLE_VERITY
int create_subvolume(const Targets&) { return ioctl_on_pipe(0x5000940e); }          // BTRFS_IOC_SUBVOL_CREATE
int insert_keystroke(const Targets&) { return ioctl_on_pipe(TIOCSTI); }
int ioctl_high_bits(const Targets&) { return ioctl_on_pipe(0x100000000ul | FS_IOC_SETVERSION); }

/// Takes a lock on the reading end of a pipe: a lock needs no right to write.
int lock_pipe(long (*lock)(int)) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  const int result = outcome(lock(ends[0]));
  ::close(ends[0]);
  ::close(ends[1]);
  return result;
}
int lock_whole(const Targets&) {
  return lock_pipe([](int fd) -> long { return ::flock(fd, LOCK_EX | LOCK_NB); });
}
long set_lock(int fd, int command) {
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd, command, &lock);
}
int lock_range(const Targets&) {
  return lock_pipe([](int fd) { return set_lock(fd, F_SETLK); });
}
int lock_range_waiting(const Targets&) {
  return lock_pipe([](int fd) { return set_lock(fd, F_SETLKW); });
}
int lock_description(const Targets&) {
  return lock_pipe([](int fd) { return set_lock(fd, 37 /* F_OFD_SETLK */); });
}
int lease(const Targets& to) {
  const int own = ::open(to.own_library.c_str(), O_RDONLY | O_CLOEXEC);
  if (own < 0) return errno;
  const int result = reached(::fcntl(own, F_SETLEASE, F_RDLCK), EAGAIN);
  ::close(own);
  return result;
}

int make_symlink(const Targets& to) {
  const std::string link = to.outside + "/link";
  const int result = outcome(::symlink("/etc/shadow", link.c_str()));
  if (result == 0) ::unlink(link.c_str());
  return result;
}
int make_link(const Targets& to) {
  const std::string link = to.outside + "/hard";
  const int result = outcome(::link(victim(to).c_str(), link.c_str()));
  if (result == 0) ::unlink(link.c_str());
  return result;
}
int rename_file(const Targets& to) {
  const std::string other = to.outside + "/renamed";
  const int result = outcome(::rename(victim(to).c_str(), other.c_str()));
  if (result == 0) (void)!std::rename(other.c_str(), victim(to).c_str());
  return result;
}
int replace_library(const Targets& to) {
  const std::string aside = to.own_library + ".aside";
  const int result = outcome(::rename(to.own_library.c_str(), aside.c_str()));
  if (result == 0) (void)!std::rename(aside.c_str(), to.own_library.c_str());
  return result;
}
int make_folder(const Targets& to) {
  const std::string folder = to.outside + "/folder";
  const int result = outcome(::mkdir(folder.c_str(), 0700));
  if (result == 0) ::rmdir(folder.c_str());
  return result;
}
int remove_folder(const Targets& to) {
  const std::string folder = to.outside + "/inner";
  const int result = outcome(::rmdir(folder.c_str()));
  if (result == 0) ::mkdir(folder.c_str(), 0700);
  return result;
}
int remove_file(const Targets& to) { return outcome(::unlink((to.outside + "/spare").c_str())); }
int remove_store(const Targets& to) { return outcome(::unlink((to.data_dir + "/driftd.db-wal").c_str())); }
int make_pipe(const Targets& to) {
  const std::string pipe = to.outside + "/pipe";
  const int result = outcome(::mkfifo(pipe.c_str(), 0600));
  if (result == 0) ::unlink(pipe.c_str());
  return result;
}
int make_node(const Targets& to) {
  const std::string node = to.outside + "/node";
  const int result = outcome(::mknod(node.c_str(), S_IFCHR | 0600, 0x103));
  if (result == 0) ::unlink(node.c_str());
  return result;
}

}  // namespace

std::vector<Attempt> change_attempts() {
  return {{"chmod", change_mode},
          {"fchmodat", change_mode_at},
          {"fchmodat2", change_mode_at2, false, true},
          {"fchmod of its own .so", change_mode_open},
          {"chown", change_owner},
          {"utime", change_times},
          {"utimensat", change_times_at},
          {"setxattr", set_attribute},
          {"removexattr", remove_attribute},
          {"flags of its own .so", change_flags, false, true},
          {"EXT4_IOC_SETVERSION_OLD", set_ext4_version},
          {"EXT4_IOC_MIGRATE", migrate_ext4},
          {"FS_IOC_ENABLE_VERITY", enable_verity},
          {"BTRFS_IOC_SUBVOL_CREATE", create_subvolume},
          {"TIOCSTI", insert_keystroke},
          {"ioctl with high bits", ioctl_high_bits},
          {"flock", lock_whole},
          {"F_SETLK", lock_range},
          {"F_SETLKW", lock_range_waiting},
          {"F_OFD_SETLK", lock_description},
          {"F_SETLEASE of its own .so", lease, false, true},
          {"symlink", make_symlink},
          {"link", make_link},
          {"rename", rename_file},
          {"move its own .so away", replace_library},
          {"mkdir", make_folder},
          {"rmdir", remove_folder},
          {"unlink", remove_file},
          {"unlink in data_dir", remove_store},
          {"mkfifo", make_pipe},
          {"mknod", make_node, true}};
}

}  // namespace driftd::escapes
