// SPDX-License-Identifier: Apache-2.0
// The system calls that a worker may make: all but those in the lists below. Arguments of 32 bits are compared under a
// mask: the kernel ignores the upper half of the register, so a plugin may put anything there.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "worker/jail.hpp"

namespace driftd::worker::jail {
namespace {

using Arguments = std::initializer_list<scmp_arg_cmp>;

constexpr std::uint64_t k32 = 0xffffffff;

/// No worker needs these.
constexpr int kDenied[] = {
    // programs and processes; threads are made by clone, see filter_clone()
    SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork), SCMP_SYS(uselib), SCMP_SYS(setsid),
    SCMP_SYS(setpgid), SCMP_SYS(acct), SCMP_SYS(vhangup),
    // other processes
    SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(process_madvise),
    SCMP_SYS(process_mrelease), SCMP_SYS(pidfd_getfd), SCMP_SYS(pidfd_send_signal), SCMP_SYS(kcmp), SCMP_SYS(tkill),
    SCMP_SYS(migrate_pages), SCMP_SYS(lookup_dcookie),
    // namespaces, mounts
    SCMP_SYS(unshare), SCMP_SYS(setns), SCMP_SYS(mount), SCMP_SYS(umount), SCMP_SYS(umount2), SCMP_SYS(open_tree),
    SCMP_SYS(move_mount), SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount), SCMP_SYS(fspick),
    SCMP_SYS(mount_setattr), SCMP_SYS(chroot), SCMP_SYS(pivot_root), SCMP_SYS(quotactl), SCMP_SYS(quotactl_fd),
    SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(sysfs), SCMP_SYS(ustat), SCMP_SYS(nfsservctl),
    // the kernel
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(add_key), SCMP_SYS(request_key),
    SCMP_SYS(keyctl), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
    SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module), SCMP_SYS(create_module),
    SCMP_SYS(query_module), SCMP_SYS(get_kernel_syms), SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot), SCMP_SYS(syslog), SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(modify_ldt), SCMP_SYS(_sysctl),
    SCMP_SYS(sethostname), SCMP_SYS(setdomainname), SCMP_SYS(settimeofday), SCMP_SYS(stime), SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime), SCMP_SYS(adjtimex),
    // objects that outlive a process or can be found by others
    SCMP_SYS(shmget), SCMP_SYS(shmat), SCMP_SYS(shmctl), SCMP_SYS(shmdt), SCMP_SYS(semget), SCMP_SYS(semop),
    SCMP_SYS(semctl), SCMP_SYS(semtimedop), SCMP_SYS(msgget), SCMP_SYS(msgsnd), SCMP_SYS(msgrcv), SCMP_SYS(msgctl),
    SCMP_SYS(mq_open), SCMP_SYS(mq_unlink), SCMP_SYS(mq_timedsend), SCMP_SYS(mq_timedreceive), SCMP_SYS(mq_notify),
    SCMP_SYS(mq_getsetattr),
    // files: what landlock does not cover
    SCMP_SYS(chmod), SCMP_SYS(fchmod), SCMP_SYS(fchmodat), SCMP_SYS(chown), SCMP_SYS(fchown), SCMP_SYS(lchown),
    SCMP_SYS(fchownat), SCMP_SYS(utime), SCMP_SYS(utimes), SCMP_SYS(utimensat), SCMP_SYS(futimesat), SCMP_SYS(setxattr),
    SCMP_SYS(lsetxattr), SCMP_SYS(fsetxattr), SCMP_SYS(removexattr), SCMP_SYS(lremovexattr), SCMP_SYS(fremovexattr),
    SCMP_SYS(name_to_handle_at), SCMP_SYS(open_by_handle_at), SCMP_SYS(fanotify_init), SCMP_SYS(fanotify_mark),
    // user and group ids
    SCMP_SYS(setuid), SCMP_SYS(setgid), SCMP_SYS(setreuid), SCMP_SYS(setregid), SCMP_SYS(setresuid),
    SCMP_SYS(setresgid), SCMP_SYS(setfsuid), SCMP_SYS(setfsgid), SCMP_SYS(setgroups), SCMP_SYS(capset),
    // newer than the names that libseccomp 2.5.4 knows; the numbers are the same on every architecture: fchmodat2,
    // statmount, listmount, lsm_set_self_attr, setxattrat, removexattrat, open_tree_attr, file_setattr
    452, 457, 458, 460, 463, 466, 467, 469};
constexpr int kFirstUnknown = 470, kLastUnknown = 600;  // 512–547: calls of x32 under another name

/// These fail and never kill, so that a library that tries them may go on, also in tests. Landlock denies the first
/// ones too.
constexpr int kRefused[] = {SCMP_SYS(mkdir), SCMP_SYS(mkdirat), SCMP_SYS(rmdir), SCMP_SYS(unlink), SCMP_SYS(unlinkat),
                            SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(link), SCMP_SYS(linkat),
                            SCMP_SYS(symlink), SCMP_SYS(symlinkat), SCMP_SYS(mknod), SCMP_SYS(mknodat),
                            SCMP_SYS(truncate),
                            // memory that no budget counts, because it belongs to a file and not to the process
                            SCMP_SYS(memfd_create), SCMP_SYS(memfd_secret)};

constexpr int kNamespaces[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                               CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET, CLONE_PTRACE};

/// Options that would undo strip_process or let another process in.
constexpr int kOptions[] = {PR_SET_PDEATHSIG,       PR_SET_DUMPABLE,   PR_SET_PTRACER,
                            PR_SET_KEEPCAPS,        PR_SET_SECUREBITS, PR_SET_MM,
                            PR_SET_CHILD_SUBREAPER, PR_CAP_AMBIENT,    62 /* PR_SCHED_CORE */};

/// Commands that send signals through a descriptor.
constexpr int kFcntl[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG, F_NOTIFY};
/// File locks: with read access a plugin could block a writer (`terraform apply` waits for the lock). 37 and 38 are
/// F_OFD_SETLK and F_OFD_SETLKW.
constexpr int kLocks[] = {F_SETLK, F_SETLKW, 37, 38, F_SETLEASE};
/// The requests that libraries make of sockets and terminals. All others are denied: file systems have hundreds that
/// change a file which is open for reading.
constexpr std::uint32_t kIoctl[] = {
    FIONREAD,      FIONBIO,        FIOCLEX,        FIONCLEX,       TCGETS,        0x802c542a /* TCGETS2 */,
    TIOCGWINSZ,    TIOCOUTQ,       SIOCATMARK,     SIOCGIFNAME,    SIOCGIFCONF,   SIOCGIFFLAGS,
    SIOCGIFADDR,   SIOCGIFDSTADDR, SIOCGIFBRDADDR, SIOCGIFNETMASK, SIOCGIFMETRIC, SIOCGIFMTU,
    SIOCGIFHWADDR, SIOCGIFINDEX};

scmp_arg_cmp is(unsigned argument, std::uint64_t value) { return {argument, SCMP_CMP_MASKED_EQ, k32, value & k32}; }
scmp_arg_cmp has(unsigned argument, std::uint64_t bits) { return {argument, SCMP_CMP_MASKED_EQ, bits, bits}; }
scmp_arg_cmp lacks(unsigned argument, std::uint64_t bits) { return {argument, SCMP_CMP_MASKED_EQ, bits, 0}; }
scmp_arg_cmp is_not(unsigned argument, std::uint64_t value) { return {argument, SCMP_CMP_NE, value, 0}; }
scmp_arg_cmp above(unsigned argument, std::uint64_t value) { return {argument, SCMP_CMP_GT, value, 0}; }

/// Builds a filter; keeps the first failure.
class Filter {
 public:
  explicit Filter(bool kills)
      : context_(::seccomp_init(SCMP_ACT_ALLOW)),
        deny_(kills ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM)) {
    if (context_ == nullptr) return;
    keep(::seccomp_attr_set(context_, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
    keep(::seccomp_attr_set(context_, SCMP_FLTATR_CTL_OPTIMIZE, 2));
#if defined(__SANITIZE_THREAD__)
    keep(::seccomp_attr_set(context_, SCMP_FLTATR_CTL_TSYNC, 1));
#endif
  }
  ~Filter() { ::seccomp_release(context_); }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  void deny(int call, Arguments when = {}) { add(deny_, call, when); }
  /// Makes the call fail with `error`, also where denied calls kill.
  void refuse(int call, int error, Arguments when = {}) {
    add(SCMP_ACT_ERRNO(static_cast<unsigned>(error)), call, when);
  }
  Status load() {
    if (context_ == nullptr) return fail(Code::internal, "worker: seccomp_init: no memory");
    if (failed_ == 0) keep(::seccomp_load(context_));
    if (failed_ == 0) return {};
    return fail(Code::denied, fmt::format("worker: seccomp filter: {}", std::strerror(-failed_)));
  }

 private:
  void keep(int result) {
    if (failed_ == 0 && result < 0) failed_ = result;
  }
  void add(std::uint32_t action, int call, Arguments when) {
    if (call < 0 || context_ == nullptr) return;  // negative: not a call of this architecture
    keep(::seccomp_rule_add_array(context_, action, call, static_cast<unsigned>(when.size()), when.begin()));
  }

  scmp_filter_ctx context_;
  const std::uint32_t deny_;
  int failed_ = 0;
};

/// clone3 passes its flags in memory, where the filter cannot see them; after ENOSYS glibc uses clone.
void filter_clone(Filter& filter) {
  filter.refuse(SCMP_SYS(clone3), ENOSYS);
  filter.deny(SCMP_SYS(clone), {lacks(0, CLONE_THREAD)});
  for (const int flag : kNamespaces) filter.deny(SCMP_SYS(clone), {has(0, static_cast<std::uint64_t>(flag))});
}

/// Allows signals to the process itself only.
void filter_signals(Filter& filter) {
  const auto self = static_cast<std::uint64_t>(::getpid());
  for (const int call : {SCMP_SYS(kill), SCMP_SYS(tgkill), SCMP_SYS(rt_sigqueueinfo), SCMP_SYS(rt_tgsigqueueinfo),
                         SCMP_SYS(pidfd_open)}) {
    filter.deny(call, {is_not(0, self)});
  }
  for (const int cmd : kFcntl) filter.deny(SCMP_SYS(fcntl), {is(1, static_cast<std::uint64_t>(cmd))});
}

/// These fail and never kill: a library that locks for its own purposes may go on without.
void filter_locks(Filter& filter) {
  filter.refuse(SCMP_SYS(flock), EPERM);
  for (const int cmd : kLocks) filter.refuse(SCMP_SYS(fcntl), EPERM, {is(1, static_cast<std::uint64_t>(cmd))});
}

/// Limits, priorities and memory of other processes. The filter also denies a thread that names itself by its number,
/// which does no harm.
void filter_tuning(Filter& filter) {
  filter.deny(SCMP_SYS(prlimit64), {is_not(0, 0)});
  filter.deny(SCMP_SYS(move_pages), {is_not(0, 0)});
  filter.deny(SCMP_SYS(personality), {is_not(0, k32)});
  for (const int option : kOptions) filter.deny(SCMP_SYS(prctl), {is(0, static_cast<std::uint64_t>(option))});
  for (const int call :
       {SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_setscheduler), SCMP_SYS(sched_setparam), SCMP_SYS(sched_setattr)}) {
    filter.refuse(call, EPERM, {is_not(0, 0)});
  }
  for (const int call : {SCMP_SYS(setpriority), SCMP_SYS(ioprio_set)}) filter.refuse(call, EPERM, {is_not(1, 0)});
  filter.refuse(SCMP_SYS(setpriority), EPERM, {is(0, PRIO_USER)});
  filter.refuse(SCMP_SYS(ioprio_set), EPERM, {is(0, 3 /* IOPRIO_WHO_USER */)});
}

/// Allows internet stream and datagram sockets. glibc asks for Unix (nscd, syslog) and netlink (addresses) sockets and
/// goes on without, so these fail and never kill. A pair of datagram sockets could send to any Unix socket; SOCK_RAW
/// makes such a pair too.
void filter_sockets(Filter& filter, bool unix_sockets) {
  constexpr std::uint64_t kTypes = 0xf;
  const int socket = SCMP_SYS(socket);
  for (std::uint64_t family = 0; family < AF_NETLINK; ++family) {
    if (family == AF_UNIX || family == AF_INET || family == AF_INET6) continue;
    filter.deny(socket, {is(0, family)});
  }
  filter.deny(socket, {above(0, AF_NETLINK)});
  filter.refuse(socket, EAFNOSUPPORT, {is(0, AF_NETLINK)});
  if (!unix_sockets) filter.refuse(socket, EPERM, {is(0, AF_UNIX)});
  for (std::uint64_t type = 0; type <= kTypes; ++type) {
    if (type != SOCK_STREAM && type != SOCK_DGRAM) {
      for (const std::uint64_t family : {AF_INET, AF_INET6})
        filter.deny(socket, {is(0, family), {1, SCMP_CMP_MASKED_EQ, kTypes, type}});
    }
    if (type != SOCK_STREAM && type != SOCK_SEQPACKET)
      filter.deny(SCMP_SYS(socketpair), {{1, SCMP_CMP_MASKED_EQ, kTypes, type}});
  }
  filter.deny(SCMP_SYS(socketpair), {is_not(0, AF_UNIX)});
  // MPTCP, UDP-Lite, SCTP, L2TP and ICMP datagrams are stream and datagram sockets too, so they are denied by protocol.
  for (const std::uint64_t family : {AF_INET, AF_INET6}) {
    for (std::uint64_t protocol = 1; protocol < IPPROTO_UDP; ++protocol) {
      if (protocol != IPPROTO_TCP) filter.deny(socket, {is(0, family), is(2, protocol)});
    }
    filter.deny(socket, {is(0, family), above(2, IPPROTO_UDP)});
  }
}

/// A second filter, because libseccomp cannot express "none of these". The kernel applies the stricter answer of the
/// two. The first filter already kills processes that use another system call table (x32, i386).
Status allow_ioctls() {
  std::vector<sock_filter> code = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_ioctl, 1, 0),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                                   // lower half of the request
                                   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1]))};
  for (const std::uint32_t request : kIoctl) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, request, 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
#if defined(__SANITIZE_THREAD__)
  constexpr unsigned kFlags = SECCOMP_FILTER_FLAG_TSYNC;
#else
  constexpr unsigned kFlags = 0;
#endif
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, kFlags, &program) == 0) return {};
  return fail(Code::denied, fmt::format("worker: seccomp filter of ioctl: {}", std::strerror(errno)));
}

}  // namespace

bool has_seccomp() { return ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0; }

Status enter_seccomp(const JailSpec& spec) {
  Filter filter(spec.kills);
  for (const int call : kDenied) filter.deny(call);
  for (const int call : kRefused) filter.refuse(call, EPERM);
  for (int call = kFirstUnknown; call <= kLastUnknown; ++call) filter.refuse(call, ENOSYS);
  filter_clone(filter);
  filter_signals(filter);
  filter_locks(filter);
  filter_tuning(filter);
  filter_sockets(filter, spec.unix_sockets);
  if (spec.read_paths.empty()) filter.refuse(SCMP_SYS(inotify_add_watch), EPERM);  // landlock does not cover inotify
  DRIFTD_CHECK(allow_ioctls());
  return filter.load();
}

}  // namespace driftd::worker::jail
