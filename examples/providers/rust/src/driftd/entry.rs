// SPDX-License-Identifier: Apache-2.0
//! What the host calls: driftd_provider_v1, the functions of the provider's table, and the one of the watch extension.
//! Each hands the call to the provider's Instance and turns its error or panic into a status.
use super::abi::{
    copy, lend, Accept, HostTable, OpenArgs, ProviderTable, Push, PushHealth, RawHealth, RawIdentity, RefreshArgs, Str,
    WatchArgs, WatchTable, HEALTH_DOWN, HEALTH_UP, REFRESH_FULL,
};
use super::{Call, Identity, Instance, Outcome, Plugin, Refresh, Status};
use super::{INTERNAL, NOT_FOUND, OK, UNAVAILABLE, UNSUPPORTED};
use std::any::Any;
use std::mem::size_of;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicPtr, Ordering};

// enter() sets both before the host has any other function to call.
static HOST: AtomicPtr<HostTable> = AtomicPtr::new(std::ptr::null_mut());
static PLUGIN: AtomicPtr<Plugin> = AtomicPtr::new(std::ptr::null_mut());

pub(super) fn host() -> &'static HostTable {
    unsafe { &*HOST.load(Ordering::Acquire) }
}

fn plugin() -> &'static Plugin {
    unsafe { &*PLUGIN.load(Ordering::Acquire) }
}

/// The body of driftd_provider_v1. Use the macro `driftd_provider!`.
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

static TABLE: ProviderTable = ProviderTable {
    size: size_of::<ProviderTable>() as u32,
    reserved: 0,
    describe,
    schema,
    open,
    read,
    refresh,
    diff,
    health,
    wake,
    close,
    query,
};

/// Runs `f` for a call of the host. An error or a panic becomes the status and one diagnostic.
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

/// A panic carries a &str if its text is a literal, and a String if it was formatted.
fn panic_text(payload: &(dyn Any + Send)) -> &str {
    if let Some(literal) = payload.downcast_ref::<&str>() {
        return literal;
    }
    if let Some(formatted) = payload.downcast_ref::<String>() {
        return formatted;
    }
    "a panic without a text"
}

/// Returns the Instance that open() made.
unsafe fn instance<'a>(this: *mut c_void) -> &'a dyn Instance {
    (*(this as *const Box<dyn Instance>)).as_ref()
}

unsafe extern "C" fn describe(push: Push, user: *mut c_void) -> Status {
    push(user, lend(plugin().describe));
    OK
}

unsafe extern "C" fn schema(what: Str, push: Push, user: *mut c_void) -> Status {
    let what = copy(what);
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
        let made = (plugin().open)(&copy((*args).settings))?;
        // A Box<dyn Instance> is two words wide. The second Box gives it an address of one word.
        *out = Box::into_raw(Box::new(made)) as *mut c_void;
        Ok(())
    })
}

unsafe extern "C" fn close(this: *mut c_void) {
    let _ = catch_unwind(|| drop(Box::from_raw(this as *mut Box<dyn Instance>)));
}

unsafe extern "C" fn read(this: *mut c_void, call: u64, ids: *const RawIdentity, count: u32, stride: u32) -> Status {
    guarded(call, |call| {
        let mut wanted = Vec::new();
        for i in 0..count as usize {
            // The host's struct may be larger than ours, so its `stride` leads from one to the next.
            let raw = &*((ids as *const u8).add(i * stride as usize) as *const RawIdentity);
            wanted.push(Identity { kind: copy(raw.kind), id: copy(raw.id) });
        }
        instance(this).read(call, &wanted)
    })
}

unsafe extern "C" fn refresh(this: *mut c_void, call: u64, args: *const RefreshArgs, _: *mut c_void) -> Status {
    guarded(call, |call| {
        let args = &*args;
        let request = Refresh {
            full: args.flags & REFRESH_FULL != 0,
            cursor: copy(args.cursor),
            kinds: (0..args.kind_count as usize).map(|i| copy(*args.kinds.add(i))).collect(),
        };
        instance(this).refresh(call, &request)
    })
}

/// This binding leaves every comparison to the host.
unsafe extern "C" fn diff(_: *mut c_void, _: *const c_void, _: *const c_void, _: *mut c_void) -> Status {
    UNSUPPORTED
}

unsafe extern "C" fn health(this: *mut c_void, call: u64, push: PushHealth, user: *mut c_void) -> Status {
    guarded(call, |call| {
        let (state, reason) = match instance(this).health(call) {
            Ok(()) => (HEALTH_UP, String::new()),
            // That the system is down is a report, not a failure of the call.
            Err(down) if down.code == UNAVAILABLE => (HEALTH_DOWN, down.text),
            Err(failure) => return Err(failure),
        };
        let report = RawHealth {
            size: size_of::<RawHealth>() as u32,
            state,
            latency_us: 0,
            reason: lend(&reason),
            role: lend(""),
            system_identity: lend(""),
            server_version: lend(""),
        };
        push(user, &report);
        Ok(())
    })
}

/// Nothing to do: `Call::wait` also waits for the host's cancel descriptor.
unsafe extern "C" fn wake(_: *mut c_void) {}

unsafe extern "C" fn query(id: Str, revision: u32) -> *const c_void {
    static WATCH: WatchTable = WatchTable { size: size_of::<WatchTable>() as u32, reserved: 0, watch };
    if copy(id) == "driftd.watch" && revision == 1 {
        return &WATCH as *const WatchTable as *const c_void;
    }
    std::ptr::null()
}

unsafe extern "C" fn watch(this: *mut c_void, call: u64, _: *const WatchArgs) -> Status {
    guarded(call, |call| instance(this).watch(call))
}
