// SPDX-License-Identifier: Apache-2.0
//! The layouts of driftd/provider.h and driftd/ext/watch.h, field by field. `size` is the size of the struct in bytes:
//! by it host and provider know which fields the other one has. This module is private, so only the binding sees what
//! is `pub`.
use super::{Record, Status, Unread};
use std::mem::size_of;
use std::os::raw::{c_int, c_ulong, c_void};

pub const MARK_CHECKPOINT: u32 = 1;
pub const MARK_COMPLETE: u32 = 2;
pub const MARK_BOOKMARK: u32 = 3;
pub const REFRESH_FULL: u32 = 1;
pub const HEALTH_UP: u32 = 1;
pub const HEALTH_DOWN: u32 = 3;

/// A borrowed text. It does not end with NUL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    data: *const u8,
    len: u64,
}

/// Borrows a text for a call of a host function, which does not keep it.
pub fn lend(text: &str) -> Str {
    Str { data: text.as_ptr(), len: text.len() as u64 }
}

/// Copies a text of the host. What is not UTF-8 is replaced.
pub unsafe fn copy(text: Str) -> String {
    if text.len == 0 {
        return String::new();
    }
    String::from_utf8_lossy(std::slice::from_raw_parts(text.data, text.len as usize)).into_owned()
}

#[repr(C)]
pub struct RawIdentity {
    pub size: u32,
    pub reserved: u32,
    pub kind: Str,
    pub id: Str,
}

#[repr(C)]
pub struct RawUnread {
    pub size: u32,
    pub code: Status,
    pub path: Str,
    pub reason: Str,
}

#[repr(C)]
pub struct RawRecord {
    pub size: u32,
    pub schema_revision: u32,
    pub kind: Str,
    pub id: Str,
    pub backend: Str,
    pub body: Str,
    pub status: Str,
    pub version: Str,
    pub external_name: Str,
    pub origin: Str,
    pub unread: *const RawUnread,
    pub unread_count: u32,
    pub unread_stride: u32,
    pub metadata: *const c_void,
    pub metadata_count: u32,
    pub metadata_stride: u32,
    pub sensitive: *const Str,
    pub sensitive_count: u64,
    pub observed_ns: i64,
    pub tombstone: u32,
    pub reserved: u32,
}

#[repr(C)]
pub struct RawMark {
    pub size: u32,
    pub mark_type: u32,
    pub kind: Str,
    pub cursor: Str,
    pub count: u64,
    pub backend: Str,
}

#[repr(C)]
pub struct RawDiagnostic {
    pub size: u32,
    pub code: Status,
    pub kind: Str,
    pub id: Str,
    pub path: Str,
    pub text: Str,
    pub right: Str,
    pub retry_after_ms: i64,
    pub backend: Str,
}

#[repr(C)]
pub struct RawHealth {
    pub size: u32,
    pub state: u32,
    pub latency_us: i64,
    pub reason: Str,
    pub role: Str,
    pub system_identity: Str,
    pub server_version: Str,
}

#[repr(C)]
pub struct OpenArgs {
    pub size: u32,
    pub reserved: u32,
    pub backend: Str,
    pub settings: Str,
}

#[repr(C)]
pub struct RefreshArgs {
    pub size: u32,
    pub flags: u32,
    pub cursor: Str,
    pub kinds: *const Str,
    pub kind_count: u32,
    pub reserved: u32,
}

/// The host's functions that take a document, the report of health, and the bytes of a secret.
pub type Push = unsafe extern "C" fn(*mut c_void, Str);
pub type PushHealth = unsafe extern "C" fn(*mut c_void, *const RawHealth);
pub type Use = unsafe extern "C" fn(*mut c_void, *const u8, u64);

/// The functions of the host.
#[repr(C)]
pub struct HostTable {
    pub size: u32,
    pub minor: u32,
    pub now: unsafe extern "C" fn() -> i64,
    pub log: unsafe extern "C" fn(u64, i32, Str, *const c_void, u32),
    pub metric: unsafe extern "C" fn(u64, Str, f64) -> Status,
    pub cancelled: unsafe extern "C" fn(u64) -> i32,
    pub deadline: unsafe extern "C" fn(u64) -> i64,
    pub cancel_fd: unsafe extern "C" fn(u64) -> i32,
    pub emit: unsafe extern "C" fn(u64, *const RawRecord, u32, u32) -> Status,
    pub mark: unsafe extern "C" fn(u64, *const RawMark) -> Status,
    pub diag: unsafe extern "C" fn(u64, *const RawDiagnostic),
    pub permit: unsafe extern "C" fn(u64, Str, u32) -> Status,
    pub secret: unsafe extern "C" fn(u64, Str, Use, *mut c_void) -> Status,
    pub query: unsafe extern "C" fn(Str, u32) -> *const c_void,
}

/// The functions of the provider.
#[repr(C)]
pub struct ProviderTable {
    pub size: u32,
    pub reserved: u32,
    pub describe: unsafe extern "C" fn(Push, *mut c_void) -> Status,
    pub schema: unsafe extern "C" fn(Str, Push, *mut c_void) -> Status,
    pub open: unsafe extern "C" fn(u64, *const OpenArgs, *mut *mut c_void) -> Status,
    pub read: unsafe extern "C" fn(*mut c_void, u64, *const RawIdentity, u32, u32) -> Status,
    pub refresh: unsafe extern "C" fn(*mut c_void, u64, *const RefreshArgs, *mut c_void) -> Status,
    pub diff: unsafe extern "C" fn(*mut c_void, *const c_void, *const c_void, *mut c_void) -> Status,
    pub health: unsafe extern "C" fn(*mut c_void, u64, PushHealth, *mut c_void) -> Status,
    pub wake: unsafe extern "C" fn(*mut c_void),
    pub close: unsafe extern "C" fn(*mut c_void),
    pub query: unsafe extern "C" fn(Str, u32) -> *const c_void,
}

#[repr(C)]
pub struct WatchArgs {
    pub size: u32,
    pub reserved: u32,
    pub cursor: Str,
}

#[repr(C)]
pub struct WatchTable {
    pub size: u32,
    pub reserved: u32,
    pub watch: unsafe extern "C" fn(*mut c_void, u64, *const WatchArgs) -> Status,
}

/// What driftd_provider_v1 answers.
#[repr(C)]
pub struct Accept {
    pub size: u32,
    pub minor_built: u32,
    pub minor_needed: u32,
    pub reserved: u32,
    pub table: *const ProviderTable,
}

impl RawUnread {
    /// Borrows the texts of `unread`.
    pub fn borrow(unread: &Unread) -> RawUnread {
        RawUnread {
            size: size_of::<RawUnread>() as u32,
            code: unread.code,
            path: lend(&unread.path),
            reason: lend(&unread.reason),
        }
    }
}

impl RawRecord {
    /// Borrows the texts of `record`, and `unread`.
    pub fn borrow(record: &Record, unread: &[RawUnread]) -> RawRecord {
        RawRecord {
            size: size_of::<RawRecord>() as u32,
            schema_revision: 0,
            kind: lend(&record.kind),
            id: lend(&record.id),
            backend: lend(""),
            body: lend(&record.body),
            status: lend(""),
            version: lend(""),
            external_name: lend(""),
            origin: lend(""),
            unread: unread.as_ptr(),
            unread_count: unread.len() as u32,
            unread_stride: size_of::<RawUnread>() as u32,
            metadata: std::ptr::null(),
            metadata_count: 0,
            metadata_stride: 0,
            sensitive: std::ptr::null(),
            sensitive_count: 0,
            observed_ns: record.observed_ns,
            tombstone: 0,
            reserved: 0,
        }
    }
}

/// `struct pollfd` of poll(2).
#[repr(C)]
pub struct PollFd {
    pub fd: c_int,
    pub events: i16,
    pub revents: i16,
}

impl PollFd {
    /// Asks whether `fd` is readable.
    pub fn readable(fd: c_int) -> PollFd {
        const POLLIN: i16 = 1;
        PollFd { fd, events: POLLIN, revents: 0 }
    }
}

extern "C" {
    pub fn poll(fds: *mut PollFd, count: c_ulong, timeout_ms: c_int) -> c_int;
}
