// SPDX-License-Identifier: Apache-2.0
//! driftd's provider ABI 1.0 (driftd/provider.h) for Rust. Copy this file and the folder `driftd` next to your
//! provider: they have no dependency. A panic of the provider becomes DRIFTD_INTERNAL with its text.
//!
//! This file is what a provider uses. `abi` has the layouts of the ABI, `entry` the functions that the host calls. All
//! unsafe code is in these three modules.
#![allow(dead_code)] // the binding is complete; a provider uses what it needs
mod abi;
mod entry;

pub use abi::{Accept, HostTable};
use abi::{lend, PollFd, RawDiagnostic, RawMark, RawRecord, RawUnread};
pub use entry::enter;
use std::os::raw::{c_int, c_void};

/// The result of a call. It decides what the host does next.
pub type Status = i32;
pub const OK: Status = 0;
pub const INVALID: Status = 1;
pub const DENIED: Status = 2;
pub const UNAUTHENTICATED: Status = 3;
pub const NOT_FOUND: Status = 4;
pub const CONFLICT: Status = 5;
pub const THROTTLED: Status = 6;
pub const UNAVAILABLE: Status = 7;
pub const DEADLINE: Status = 8;
pub const CANCELLED: Status = 9;
pub const CURSOR_EXPIRED: Status = 10;
pub const UNSUPPORTED: Status = 11;
pub const BUDGET: Status = 12;
pub const CORRUPT: Status = 13;
pub const INTERNAL: Status = 14;
const FINISH_SOON: Status = -1;

/// Tells why a call fails. If the code is DENIED, `right` names what must be granted.
#[derive(Debug, Default)]
pub struct Failure {
    pub code: Status,
    pub text: String,
    pub right: String,
}

impl Failure {
    pub fn new(code: Status, text: impl Into<String>) -> Failure {
        Failure { code, text: text.into(), right: String::new() }
    }
}

pub type Outcome<T> = Result<T, Failure>;

/// The name of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub kind: String,
    pub id: String,
}

/// An attribute that exists but could not be read. It is never a drift.
pub struct Unread {
    pub path: String,
    pub code: Status,
    pub reason: String,
}

/// One resource as it was read now. `body` is a JSON object.
pub struct Record {
    pub kind: String,
    pub id: String,
    pub body: String,
    pub unread: Option<Unread>,
    /// The time of `Call::now()` just before the system was asked.
    pub observed_ns: i64,
}

/// What the host asks for. `full`: everything must be listed, without using `cursor`.
#[derive(Default)]
pub struct Refresh {
    pub full: bool,
    pub cursor: String,
    kinds: Vec<String>,
}

impl Refresh {
    /// Returns true if the host asks for this kind.
    pub fn wants(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|k| k == kind)
    }
}

/// One opened backend. Its calls may run at the same time on several threads.
pub trait Instance: Send + Sync {
    /// Emits every resource, then calls `call.complete` for each kind.
    fn refresh(&self, call: &Call, request: &Refresh) -> Outcome<()>;
    /// Emits each of these resources. For one that does not exist, calls `call.not_found`.
    fn read(&self, call: &Call, ids: &[Identity]) -> Outcome<()>;
    /// Returns Ok if the system can be reached.
    fn health(&self, call: &Call) -> Outcome<()>;
    /// Blocks until `call.cancelled()`.
    fn watch(&self, call: &Call) -> Outcome<()>;
}

/// What `driftd_provider!` exports.
pub struct Plugin {
    pub describe: &'static str,
    /// Pairs of a name and a schema: one for "settings" and one for each kind.
    pub documents: &'static [(&'static str, &'static str)],
    pub open: fn(settings: &str) -> Outcome<Box<dyn Instance>>,
}

/// A call in progress. It is neither Send nor Sync, because it belongs to its thread.
pub struct Call {
    handle: u64,
    this_thread_only: std::marker::PhantomData<*const ()>,
}

impl Call {
    /// Returns the host's wall clock in ns since the epoch.
    pub fn now(&self) -> i64 {
        unsafe { (entry::host().now)() }
    }

    /// Returns true if the host wants the call to end.
    pub fn cancelled(&self) -> bool {
        unsafe { (entry::host().cancelled)(self.handle) != 0 }
    }

    /// Emits a record. False: it was accepted, but the call should return soon, without `complete`.
    pub fn emit(&self, r: &Record) -> Outcome<bool> {
        let unread: Vec<RawUnread> = r.unread.iter().map(RawUnread::borrow).collect();
        let record = RawRecord::borrow(r, &unread);
        match unsafe { (entry::host().emit)(self.handle, &record, 1, record.size) } {
            OK => Ok(true),
            FINISH_SOON => Ok(false),
            code => Err(Failure::new(code, "the host refused a record")),
        }
    }

    /// Ends a page. A later refresh can resume after it with `cursor`.
    pub fn checkpoint(&self, cursor: &str) -> Outcome<()> {
        self.mark(abi::MARK_CHECKPOINT, "", cursor, 0)
    }

    /// Reports that every resource of `kind` was emitted in this refresh, and how many there were.
    pub fn complete(&self, kind: &str, count: u64) -> Outcome<()> {
        self.mark(abi::MARK_COMPLETE, kind, "", count)
    }

    /// Asks the host, from a watch, to refresh now.
    pub fn hint(&self) -> Outcome<()> {
        self.mark(abi::MARK_BOOKMARK, "", "", 0)
    }

    fn mark(&self, mark_type: u32, kind: &str, cursor: &str, count: u64) -> Outcome<()> {
        let mark = RawMark {
            size: std::mem::size_of::<RawMark>() as u32,
            mark_type,
            kind: lend(kind),
            cursor: lend(cursor),
            count,
            backend: lend(""),
        };
        match unsafe { (entry::host().mark)(self.handle, &mark) } {
            OK | FINISH_SOON => Ok(()),
            code => Err(Failure::new(code, "the host refused a mark")),
        }
    }

    /// Reports that the system has no such resource.
    pub fn not_found(&self, id: &Identity) {
        self.diag(NOT_FOUND, Some(id), "gone", "");
    }

    /// Sends a diagnostic: about one resource, or about the whole call if `id` is None.
    fn diag(&self, code: Status, id: Option<&Identity>, text: &str, right: &str) {
        let (kind, id) = id.map_or(("", ""), |i| (&i.kind, &i.id));
        let diagnostic = RawDiagnostic {
            size: std::mem::size_of::<RawDiagnostic>() as u32,
            code,
            kind: lend(kind),
            id: lend(id),
            path: lend(""),
            text: lend(text),
            right: lend(right),
            retry_after_ms: 0,
            backend: lend(""),
        };
        unsafe { (entry::host().diag)(self.handle, &diagnostic) }
    }

    /// Returns a copy of the secret that a token stands for. Its bytes are overwritten when the copy is dropped.
    pub fn secret(&self, token: &str) -> Outcome<Secret> {
        // The host calls this with the bytes, which are valid only until it returns.
        unsafe extern "C" fn keep(user: *mut c_void, data: *const u8, len: u64) {
            if len != 0 {
                let bytes = &mut *(user as *mut Vec<u8>);
                bytes.extend_from_slice(std::slice::from_raw_parts(data, len as usize));
            }
        }
        let mut bytes: Vec<u8> = Vec::new();
        let user = &mut bytes as *mut Vec<u8> as *mut c_void;
        match unsafe { (entry::host().secret)(self.handle, lend(token), keep, user) } {
            OK => Ok(Secret(bytes)),
            code => Err(Failure::new(code, "the host refused the secret")),
        }
    }

    /// Blocks, in a watch, until `fd` is readable (true) or the host wants the call to end (false).
    pub fn wait(&self, fd: c_int) -> bool {
        let cancel = unsafe { (entry::host().cancel_fd)(self.handle) };
        let mut fds = [PollFd::readable(fd), PollFd::readable(cancel)];
        while !self.cancelled() {
            if unsafe { abi::poll(fds.as_mut_ptr(), 2, 1000) } > 0 && fds[0].revents != 0 {
                return true;
            }
        }
        false
    }
}

/// The bytes of a secret during one call.
pub struct Secret(Vec<u8>);

impl std::ops::Deref for Secret {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        for byte in self.0.iter_mut() {
            // A plain assignment could be optimised away, because nobody reads the bytes again.
            unsafe { std::ptr::write_volatile(byte, 0) }
        }
    }
}

/// Exports driftd_provider_v1, the only symbol that the host looks for. `$plugin` is a `static` of the type Plugin.
#[macro_export]
macro_rules! driftd_provider {
    ($plugin:expr) => {
        /// # Safety
        /// Only the host calls it.
        #[no_mangle]
        pub unsafe extern "C" fn driftd_provider_v1(
            host: *const $crate::driftd::HostTable,
            _: *const std::os::raw::c_void,
            out: *mut $crate::driftd::Accept,
        ) -> $crate::driftd::Status {
            $crate::driftd::enter(&$plugin, host, out)
        }
    };
}
