// SPDX-License-Identifier: Apache-2.0
//! driftd's provider ABI 1.0 (driftd/provider.h) for Rust. Copy this file next to your provider: it has no dependency.
//! All unsafe code is here. A panic of the provider becomes DRIFTD_INTERNAL with its text.
#![allow(dead_code)] // the binding is complete; a provider uses what it needs
use std::os::raw::{c_int, c_ulong, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicPtr, Ordering};

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

/// Says why a call fails. The code tells the host what to do next. If it is DENIED, `right` names what must be granted.
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
/// One resource as read now; `body` is a JSON object.
pub struct Record {
    pub kind: String,
    pub id: String,
    pub body: String,
    pub unread: Option<Unread>,
    pub observed_ns: i64, // when the request was sent: Call::now()
}
#[derive(Default)]
pub struct Refresh {
    pub full: bool,
    pub cursor: String,
    kinds: Vec<String>,
}
impl Refresh {
    pub fn wants(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|k| k == kind)
    }
}

/// One opened backend. Its calls may run at the same time on several threads.
pub trait Instance: Send + Sync {
    fn refresh(&self, call: &Call, request: &Refresh) -> Outcome<()>;
    /// Emits each resource. For one that does not exist, calls `call.not_found(id)`.
    fn read(&self, call: &Call, ids: &[Identity]) -> Outcome<()>;
    /// Returns Ok if the system can be reached.
    fn health(&self, call: &Call) -> Outcome<()>;
    /// Blocks until `call.cancelled()`.
    fn watch(&self, call: &Call) -> Outcome<()>;
}
/// What `driftd_provider!` exports.
pub struct Plugin {
    pub describe: &'static str,
    pub documents: &'static [(&'static str, &'static str)], // "settings" and each kind
    pub open: fn(settings: &str) -> Outcome<Box<dyn Instance>>,
}

// ---- the layouts of provider.h ----------------------------------------------------------------------------------
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    data: *const u8,
    len: u64,
}
fn lend(text: &str) -> Str {
    Str { data: text.as_ptr(), len: text.len() as u64 }
}
unsafe fn text(s: Str) -> String {
    if s.len == 0 {
        return String::new();
    }
    String::from_utf8_lossy(std::slice::from_raw_parts(s.data, s.len as usize)).into_owned()
}
#[repr(C)]
struct RawIdentity {
    size: u32,
    reserved: u32,
    kind: Str,
    id: Str,
}
#[repr(C)]
struct RawUnread {
    size: u32,
    code: Status,
    path: Str,
    reason: Str,
}
#[repr(C)]
struct RawRecord {
    size: u32,
    schema_revision: u32,
    kind: Str,
    id: Str,
    backend: Str,
    body: Str,
    status: Str,
    version: Str,
    external_name: Str,
    origin: Str,
    unread: *const RawUnread,
    unread_count: u32,
    unread_stride: u32,
    metadata: *const c_void,
    metadata_count: u32,
    metadata_stride: u32,
    sensitive: *const Str,
    sensitive_count: u64,
    observed_ns: i64,
    tombstone: u32,
    reserved: u32,
}
#[repr(C)]
struct RawMark {
    size: u32,
    kind_of_mark: u32,
    kind: Str,
    cursor: Str,
    count: u64,
    backend: Str,
}
#[repr(C)]
struct RawDiagnostic {
    size: u32,
    code: Status,
    kind: Str,
    id: Str,
    path: Str,
    text: Str,
    right: Str,
    retry_after_ms: i64,
    backend: Str,
}
#[repr(C)]
struct RawHealth {
    size: u32,
    state: u32,
    latency_us: i64,
    reason: Str,
    role: Str,
    system_identity: Str,
    server_version: Str,
}
#[repr(C)]
struct OpenArgs {
    size: u32,
    reserved: u32,
    backend: Str,
    settings: Str,
}
#[repr(C)]
struct RefreshArgs {
    size: u32,
    flags: u32,
    cursor: Str,
    kinds: *const Str,
    kind_count: u32,
    reserved: u32,
}
type Push = unsafe extern "C" fn(*mut c_void, Str);
type Use = unsafe extern "C" fn(*mut c_void, *const u8, u64);
#[repr(C)]
pub struct HostTable {
    size: u32,
    minor: u32,
    now: unsafe extern "C" fn() -> i64,
    log: unsafe extern "C" fn(u64, i32, Str, *const c_void, u32),
    metric: unsafe extern "C" fn(u64, Str, f64) -> Status,
    cancelled: unsafe extern "C" fn(u64) -> i32,
    deadline: unsafe extern "C" fn(u64) -> i64,
    cancel_fd: unsafe extern "C" fn(u64) -> i32,
    emit: unsafe extern "C" fn(u64, *const RawRecord, u32, u32) -> Status,
    mark: unsafe extern "C" fn(u64, *const RawMark) -> Status,
    diag: unsafe extern "C" fn(u64, *const RawDiagnostic),
    permit: unsafe extern "C" fn(u64, Str, u32) -> Status,
    secret: unsafe extern "C" fn(u64, Str, Use, *mut c_void) -> Status,
    query: unsafe extern "C" fn(Str, u32) -> *const c_void,
}
#[repr(C)]
pub struct ProviderTable {
    size: u32,
    reserved: u32,
    describe: unsafe extern "C" fn(Push, *mut c_void) -> Status,
    schema: unsafe extern "C" fn(Str, Push, *mut c_void) -> Status,
    open: unsafe extern "C" fn(u64, *const OpenArgs, *mut *mut c_void) -> Status,
    read: unsafe extern "C" fn(*mut c_void, u64, *const RawIdentity, u32, u32) -> Status,
    refresh: unsafe extern "C" fn(*mut c_void, u64, *const RefreshArgs, *mut c_void) -> Status,
    diff: unsafe extern "C" fn(*mut c_void, *const c_void, *const c_void, *mut c_void) -> Status,
    health: unsafe extern "C" fn(*mut c_void, u64, unsafe extern "C" fn(*mut c_void, *const RawHealth), *mut c_void) -> Status,
    wake: unsafe extern "C" fn(*mut c_void),
    close: unsafe extern "C" fn(*mut c_void),
    query: unsafe extern "C" fn(Str, u32) -> *const c_void,
}
#[repr(C)]
struct WatchArgs {
    size: u32,
    reserved: u32,
    cursor: Str,
}
#[repr(C)]
struct WatchTable {
    size: u32,
    reserved: u32,
    watch: unsafe extern "C" fn(*mut c_void, u64, *const WatchArgs) -> Status,
}
#[repr(C)]
pub struct Accept {
    size: u32,
    minor_built: u32,
    minor_needed: u32,
    reserved: u32,
    table: *const ProviderTable,
}
#[repr(C)]
struct PollFd {
    fd: c_int,
    events: i16,
    revents: i16,
}
extern "C" {
    fn poll(fds: *mut PollFd, count: c_ulong, timeout_ms: c_int) -> c_int;
}

// ---- what a provider calls ---------------------------------------------------------------------------------------
static HOST: AtomicPtr<HostTable> = AtomicPtr::new(std::ptr::null_mut());
static PLUGIN: AtomicPtr<Plugin> = AtomicPtr::new(std::ptr::null_mut());
fn host() -> &'static HostTable {
    unsafe { &*HOST.load(Ordering::Acquire) } // set by enter() before the host has any function to call
}
fn plugin() -> &'static Plugin {
    unsafe { &*PLUGIN.load(Ordering::Acquire) }
}

/// A call in progress. It is neither Send nor Sync, because it belongs to its thread.
pub struct Call {
    handle: u64,
    this_thread_only: std::marker::PhantomData<*const ()>,
}
impl Call {
    /// The host's wall clock, ns since the epoch.
    pub fn now(&self) -> i64 {
        unsafe { (host().now)() }
    }
    pub fn cancelled(&self) -> bool {
        unsafe { (host().cancelled)(self.handle) != 0 }
    }
    /// Emits a record. False: it was accepted, but the call should return soon, without `complete`.
    pub fn emit(&self, r: &Record) -> Outcome<bool> {
        let unread: Vec<RawUnread> = r.unread.iter().map(|u| RawUnread {
            size: std::mem::size_of::<RawUnread>() as u32, code: u.code, path: lend(&u.path), reason: lend(&u.reason),
        }).collect();
        let size = std::mem::size_of::<RawRecord>() as u32;
        let none = lend("");
        let out = RawRecord {
            size, schema_revision: 0, kind: lend(&r.kind), id: lend(&r.id), backend: none, body: lend(&r.body), status: none,
            version: none, external_name: none, origin: none, unread: unread.as_ptr(), unread_count: unread.len() as u32,
            unread_stride: std::mem::size_of::<RawUnread>() as u32, metadata: std::ptr::null(), metadata_count: 0,
            metadata_stride: 0, sensitive: std::ptr::null(), sensitive_count: 0, observed_ns: r.observed_ns, tombstone: 0,
            reserved: 0,
        };
        match unsafe { (host().emit)(self.handle, &out, 1, size) } {
            OK => Ok(true),
            FINISH_SOON => Ok(false),
            code => Err(Failure::new(code, "the host refused a record")),
        }
    }
    fn mark(&self, kind_of_mark: u32, kind: &str, cursor: &str, count: u64) -> Outcome<()> {
        let size = std::mem::size_of::<RawMark>() as u32;
        let out = RawMark { size, kind_of_mark, kind: lend(kind), cursor: lend(cursor), count, backend: lend("") };
        match unsafe { (host().mark)(self.handle, &out) } {
            OK | FINISH_SOON => Ok(()),
            code => Err(Failure::new(code, "the host refused a mark")),
        }
    }
    /// Ends a page. A later refresh can resume after it with `cursor`.
    pub fn checkpoint(&self, cursor: &str) -> Outcome<()> {
        self.mark(1, "", cursor, 0)
    }
    /// Says that every resource of `kind` was emitted in this run, and how many there were.
    pub fn complete(&self, kind: &str, count: u64) -> Outcome<()> {
        self.mark(2, kind, "", count)
    }
    /// Tells the host, from a watch, to refresh now.
    pub fn hint(&self) -> Outcome<()> {
        self.mark(3, "", "", 0)
    }
    fn diag(&self, code: Status, id: Option<&Identity>, what: &str, right: &str) {
        let (kind, id) = id.map_or(("", ""), |i| (&i.kind, &i.id));
        let out = RawDiagnostic {
            size: std::mem::size_of::<RawDiagnostic>() as u32, code, kind: lend(kind), id: lend(id), path: lend(""),
            text: lend(what), right: lend(right), retry_after_ms: 0, backend: lend(""),
        };
        unsafe { (host().diag)(self.handle, &out) }
    }
    /// Says that the system has no such resource.
    pub fn not_found(&self, id: &Identity) {
        self.diag(NOT_FOUND, Some(id), "gone", "");
    }
    /// Returns a copy of the bytes that a token stands for. They are overwritten when the copy is dropped.
    pub fn secret(&self, token: &str) -> Outcome<Secret> {
        unsafe extern "C" fn keep(user: *mut c_void, data: *const u8, len: u64) {
            if len != 0 {
                (*(user as *mut Vec<u8>)).extend_from_slice(std::slice::from_raw_parts(data, len as usize));
            }
        }
        let mut bytes: Vec<u8> = Vec::new();
        match unsafe { (host().secret)(self.handle, lend(token), keep, &mut bytes as *mut Vec<u8> as *mut c_void) } {
            OK => Ok(Secret(bytes)),
            code => Err(Failure::new(code, "the host refused the secret")),
        }
    }
    /// Blocks, in a watch, until `fd` is readable (true) or the host wants the call to end (false).
    pub fn wait(&self, fd: c_int) -> bool {
        const READABLE: i16 = 1;
        let cancel = unsafe { (host().cancel_fd)(self.handle) };
        let mut on = [PollFd { fd, events: READABLE, revents: 0 }, PollFd { fd: cancel, events: READABLE, revents: 0 }];
        while !self.cancelled() {
            if unsafe { poll(on.as_mut_ptr(), 2, 1000) } > 0 && on[0].revents != 0 {
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
            unsafe { std::ptr::write_volatile(byte, 0) }
        }
    }
}

// ---- what the host calls -----------------------------------------------------------------------------------------
fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    let literal = payload.downcast_ref::<&str>().copied();
    literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}
/// Runs `f` with the call. An error or a panic becomes the status and one diagnostic.
fn guarded(handle: u64, f: impl FnOnce(&Call) -> Outcome<()>) -> Status {
    let call = Call { handle, this_thread_only: std::marker::PhantomData };
    match catch_unwind(AssertUnwindSafe(|| f(&call))) {
        Ok(Ok(())) => OK,
        Ok(Err(failure)) => {
            call.diag(failure.code, None, &failure.text, &failure.right);
            failure.code
        }
        Err(payload) => {
            call.diag(INTERNAL, None, panic_text(payload.as_ref()), "");
            INTERNAL
        }
    }
}
unsafe fn instance<'a>(this: *mut c_void) -> &'a dyn Instance {
    (*(this as *const Box<dyn Instance>)).as_ref()
}
unsafe extern "C" fn describe(push: Push, user: *mut c_void) -> Status {
    push(user, lend(plugin().describe));
    OK
}
unsafe extern "C" fn schema(what: Str, push: Push, user: *mut c_void) -> Status {
    let what = text(what);
    match plugin().documents.iter().find(|(name, _)| *name == what) {
        Some((_, document)) => {
            push(user, lend(document));
            OK
        }
        None => NOT_FOUND,
    }
}
unsafe extern "C" fn open(call: u64, args: *const OpenArgs, out: *mut *mut c_void) -> Status {
    guarded(call, |_| {
        let made = (plugin().open)(&text((*args).settings))?;
        *out = Box::into_raw(Box::new(made)) as *mut c_void;
        Ok(())
    })
}
unsafe extern "C" fn read(this: *mut c_void, call: u64, ids: *const RawIdentity, count: u32, stride: u32) -> Status {
    guarded(call, |call| {
        let at = |i: u32| &*((ids as *const u8).add(i as usize * stride as usize) as *const RawIdentity);
        let wanted: Vec<Identity> = (0..count).map(|i| Identity { kind: text(at(i).kind), id: text(at(i).id) }).collect();
        instance(this).read(call, &wanted)
    })
}
unsafe extern "C" fn refresh(this: *mut c_void, call: u64, args: *const RefreshArgs, _: *mut c_void) -> Status {
    guarded(call, |call| {
        let kinds = (0..(*args).kind_count).map(|i| text(*(*args).kinds.add(i as usize))).collect();
        let request = Refresh { full: (*args).flags & 1 != 0, cursor: text((*args).cursor), kinds };
        instance(this).refresh(call, &request)
    })
}
unsafe extern "C" fn diff(_: *mut c_void, _: *const c_void, _: *const c_void, _: *mut c_void) -> Status {
    UNSUPPORTED
}
unsafe extern "C" fn health(
    this: *mut c_void, call: u64, push: unsafe extern "C" fn(*mut c_void, *const RawHealth), user: *mut c_void,
) -> Status {
    guarded(call, |call| {
        let (state, reason) = match instance(this).health(call) {
            Ok(()) => (1, String::new()),
            Err(down) if down.code == UNAVAILABLE => (3, down.text), // reported as health, not as a failure of the call
            Err(failure) => return Err(failure),
        };
        let (size, none) = (std::mem::size_of::<RawHealth>() as u32, lend(""));
        let report = RawHealth {
            size, state, latency_us: 0, reason: lend(&reason), role: none, system_identity: none, server_version: none,
        };
        push(user, &report);
        Ok(())
    })
}
unsafe extern "C" fn wake(_: *mut c_void) {}
unsafe extern "C" fn close(this: *mut c_void) {
    let _ = catch_unwind(|| drop(Box::from_raw(this as *mut Box<dyn Instance>)));
}
unsafe extern "C" fn watch(this: *mut c_void, call: u64, _: *const WatchArgs) -> Status {
    guarded(call, |call| instance(this).watch(call))
}
unsafe extern "C" fn query(id: Str, revision: u32) -> *const c_void {
    static WATCH: WatchTable = WatchTable { size: std::mem::size_of::<WatchTable>() as u32, reserved: 0, watch };
    if text(id) == "driftd.watch" && revision == 1 {
        return &WATCH as *const WatchTable as *const c_void;
    }
    std::ptr::null()
}
static TABLE: ProviderTable = ProviderTable {
    size: std::mem::size_of::<ProviderTable>() as u32, reserved: 0, describe, schema, open, read, refresh, diff, health,
    wake, close, query,
};

/// The body of the one exported function; use `driftd_provider!`.
/// # Safety
/// The pointers are those that the host gave to driftd_provider_v1.
pub unsafe fn enter(plugin: &'static Plugin, host: *const HostTable, out: *mut Accept) -> Status {
    PLUGIN.store(plugin as *const Plugin as *mut Plugin, Ordering::Release);
    HOST.store(host as *mut HostTable, Ordering::Release);
    (*out).minor_built = 0;
    (*out).minor_needed = 0; // any host of this major version is accepted
    (*out).table = &TABLE;
    OK
}
/// Exports driftd_provider_v1 for `static PLUGIN: driftd::Plugin`.
#[macro_export]
macro_rules! driftd_provider {
    ($plugin:expr) => {
        /// # Safety
        /// Called by the host only.
        #[no_mangle]
        pub unsafe extern "C" fn driftd_provider_v1(
            host: *const $crate::driftd::HostTable, _: *const std::os::raw::c_void, out: *mut $crate::driftd::Accept,
        ) -> $crate::driftd::Status {
            $crate::driftd::enter(&$plugin, host, out)
        }
    };
}
