// SPDX-License-Identifier: Apache-2.0
// driftd's provider ABI 1.0 (driftd/provider.h) for Go. Copy driftd.go, driftd.c and driftd.h next to your provider. Of
// your provider they use only the variable `plugin`. A panic of the provider becomes DRIFTD_INTERNAL with its text.
package main

/*
#cgo CFLAGS: -std=gnu11 -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter
// driftd's headers: a copy in this project, else driftd's own source tree, else its package in /usr/include
#cgo CFLAGS: -I${SRCDIR}/include -I${SRCDIR}/../../../plugin-api/include
#include "driftd.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime/cgo"
	"unsafe"
)

// Status is the result of a call. It decides what the host does next.
type Status int32

const (
	OK              Status = C.DRIFTD_OK
	Invalid         Status = C.DRIFTD_INVALID
	Denied          Status = C.DRIFTD_DENIED
	Unauthenticated Status = C.DRIFTD_UNAUTHENTICATED
	NotFound        Status = C.DRIFTD_NOT_FOUND
	Throttled       Status = C.DRIFTD_THROTTLED
	Unavailable     Status = C.DRIFTD_UNAVAILABLE
	Deadline        Status = C.DRIFTD_DEADLINE
	Cancelled       Status = C.DRIFTD_CANCELLED
	CursorExpired   Status = C.DRIFTD_CURSOR_EXPIRED
	Unsupported     Status = C.DRIFTD_UNSUPPORTED
	Corrupt         Status = C.DRIFTD_CORRUPT
	Internal        Status = C.DRIFTD_INTERNAL
)

// Failure tells why a call fails. If Code is Denied, Right names what must be granted.
type Failure struct {
	Code        Status
	Text, Right string
}

func (f *Failure) Error() string { return f.Text }

// WithCode gives an error this code, unless the error is nil or has a code already.
func WithCode(code Status, err error) error {
	var failure *Failure
	if err == nil || err == ErrFinishSoon || errors.As(err, &failure) {
		return err
	}
	return &Failure{Code: code, Text: err.Error()}
}

// Identity names a resource.
type Identity struct{ Kind, ID string }

// Unread is an attribute that exists but could not be read. It is never a drift.
type Unread struct {
	Path   string
	Code   Status
	Reason string
}

// Record is one resource as it was read now. Body is a JSON object. ObservedNs is the time of Call.Now() just before the
// system was asked.
type Record struct {
	Kind, ID   string
	Body       []byte
	Unread     *Unread
	ObservedNs int64
}

// Refresh is what the host asks for. Full: everything must be listed, without using Cursor.
type Refresh struct {
	Full   bool
	Cursor string
	Kinds  []string // empty: all kinds
}

// Wants returns true if the host asks for this kind.
func (r Refresh) Wants(kind string) bool {
	for _, k := range r.Kinds {
		if k == kind {
			return true
		}
	}
	return len(r.Kinds) == 0
}

// Instance is one opened backend. Its calls may run at the same time.
type Instance interface {
	Refresh(call Call, request Refresh) error
	Read(call Call, ids []Identity) error // must call call.Answer for each identity
	Health(call Call) error               // nil: the system can be reached
	Watch(call Call) error                // blocks until call.Cancelled()
}

// Plugin is what this library offers.
type Plugin struct {
	Describe  string
	Documents map[string]string // the schema of "settings" and of each kind
	Open      func(settings []byte) (Instance, error)
}

// Call is a call in progress. Use it only during that call and on its goroutine.
type Call struct{ handle C.driftd_call }

// Now returns the host's wall clock in ns since the epoch.
func (c Call) Now() int64 { return int64(C.go_now()) }

// Cancelled returns true if the host wants the call to end.
func (c Call) Cancelled() bool { return C.go_cancelled(c.handle) != 0 }

// Wait blocks until fd is readable (true) or the host wants the call to end (false).
func (c Call) Wait(fd int) bool { return C.go_wait(c.handle, C.int(fd)) != 0 }

// ErrFinishSoon is returned by Emit if the record was accepted and the host wants no more records now. Return it from
// the call: the call succeeds, and the kind is not complete.
var ErrFinishSoon = errors.New("the host wants no more records now")

// Emit pushes a record. It fails with Cancelled if the host wants the call to end.
func (c Call) Emit(r Record) error {
	if c.Cancelled() {
		return &Failure{Code: Cancelled, Text: "stopped by the host before " + r.ID}
	}
	var t texts
	defer t.free()
	var path, reason *C.char
	code := OK
	if r.Unread != nil {
		path, code, reason = t.lend(r.Unread.Path), r.Unread.Code, t.lend(r.Unread.Reason)
	}
	status := Status(C.go_emit(c.handle, t.lend(r.Kind), t.lend(r.ID), t.lend(string(r.Body)), C.int64_t(r.ObservedNs), path,
		C.driftd_status(code), reason))
	if status == C.DRIFTD_FINISH_SOON {
		return ErrFinishSoon
	}
	return refused(status, "a record")
}

// Answer answers one identity of a Read with its record, or with "not found" if the record is nil.
func (c Call) Answer(id Identity, r *Record) error {
	if r == nil {
		c.diag(NotFound, id, "gone", "")
		return nil
	}
	err := c.Emit(*r)
	if err == ErrFinishSoon { // this is meant for lists: a Read answers every identity
		return nil
	}
	return err
}

// Checkpoint ends a page. A later Refresh can resume after it with the cursor.
func (c Call) Checkpoint(cursor string) error { return c.mark(C.DRIFTD_MARK_CHECKPOINT, "", cursor, 0) }

// Complete reports that every resource of the kind was emitted in this refresh, and how many there were.
func (c Call) Complete(kind string, count int) error {
	return c.mark(C.DRIFTD_MARK_COMPLETE, kind, "", count)
}

// Hint asks the host, from a watch, to refresh now.
func (c Call) Hint() error { return c.mark(C.DRIFTD_MARK_BOOKMARK, "", "", 0) }

// mark sends a mark of the type `which`.
func (c Call) mark(which int, kind, cursor string, count int) error {
	var t texts
	defer t.free()
	status := Status(C.go_mark(c.handle, C.uint32_t(which), t.lend(kind), t.lend(cursor), C.uint64_t(count)))
	if status == C.DRIFTD_FINISH_SOON { // the mark was accepted
		return nil
	}
	return refused(status, "a mark")
}

// WithSecret runs f with the secret that a token stands for, and overwrites its bytes afterwards.
func (c Call) WithSecret(token string, f func(secret []byte) error) error {
	var t texts
	defer t.free()
	var secret C.driftd_secret
	defer C.driftd_forget(&secret)
	if status := Status(C.go_secret(c.handle, t.lend(token), &secret)); status != OK {
		return refused(status, "the secret")
	}
	return f(unsafe.Slice((*byte)(unsafe.Pointer(secret.data)), int(secret.len)))
}

// diag sends a diagnostic: about one resource, or about the whole call if id is empty.
func (c Call) diag(code Status, id Identity, text, right string) {
	var t texts
	defer t.free()
	C.go_diag(c.handle, C.driftd_status(code), t.lend(id.Kind), t.lend(id.ID), t.lend(text), t.lend(right))
}

// refused returns nil for OK, otherwise a Failure.
func refused(status Status, what string) error {
	if status == OK {
		return nil
	}
	return &Failure{Code: status, Text: "the host refused " + what}
}

// texts are copies of Go strings in C memory. They live during one call of a host function.
type texts []unsafe.Pointer

// lend copies a text into C memory. free releases it.
func (t *texts) lend(text string) *C.char {
	out := C.CString(text)
	*t = append(*t, unsafe.Pointer(out))
	return out
}

// free releases all copies.
func (t *texts) free() {
	for _, text := range *t {
		C.free(text)
	}
}

// guarded runs f for a call of the host. An error or a panic becomes the status and one diagnostic.
func guarded(call C.driftd_call, f func(Call) error) (status C.driftd_status) {
	c := Call{call}
	defer func() {
		if text := recover(); text != nil {
			c.diag(Internal, Identity{}, fmt.Sprint(text), "")
			status = C.DRIFTD_INTERNAL
		}
	}()
	var failure *Failure
	if err := WithCode(Internal, f(c)); err != nil && errors.As(err, &failure) {
		c.diag(failure.Code, Identity{}, failure.Text, failure.Right)
		return C.driftd_status(failure.Code)
	}
	return C.DRIFTD_OK // f succeeded or returned ErrFinishSoon
}

// text copies a text of the host.
func text(s C.driftd_str) string {
	if s.len == 0 {
		return ""
	}
	return string(unsafe.Slice((*byte)(unsafe.Pointer(s.data)), int(s.len)))
}

// instance returns the Instance of a handle that goOpen made.
func instance(self C.uintptr_t) Instance { return cgo.Handle(self).Value().(Instance) }

// push hands a document to the host's function `to`.
func push(to, user unsafe.Pointer, document string) C.driftd_status {
	var t texts
	defer t.free()
	C.go_push(to, user, t.lend(document), C.uint64_t(len(document)))
	return C.DRIFTD_OK
}

//export goDescribe
func goDescribe(to, user unsafe.Pointer) C.driftd_status { return push(to, user, plugin.Describe) }

//export goSchema
func goSchema(what *C.char, size C.uint64_t, to, user unsafe.Pointer) C.driftd_status {
	document, known := plugin.Documents[text(C.driftd_str{data: what, len: size})]
	if !known {
		return C.DRIFTD_NOT_FOUND
	}
	return push(to, user, document)
}

//export goOpen
func goOpen(call C.driftd_call, settings *C.char, size C.uint64_t, out *C.uintptr_t) C.driftd_status {
	return guarded(call, func(Call) error {
		made, err := plugin.Open([]byte(text(C.driftd_str{data: settings, len: size})))
		if err == nil {
			*out = C.uintptr_t(cgo.NewHandle(made))
		}
		return WithCode(Invalid, err)
	})
}

//export goRead
func goRead(self C.uintptr_t, call C.driftd_call, ids unsafe.Pointer, count, stride C.uint32_t) C.driftd_status {
	return guarded(call, func(c Call) error {
		wanted := make([]Identity, count)
		for i := range wanted {
			at := C.driftd_identity_at((*C.driftd_identity)(ids), stride, C.uint32_t(i))
			wanted[i] = Identity{text(at.kind), text(at.id)}
		}
		return instance(self).Read(c, wanted)
	})
}

//export goRefresh
func goRefresh(self C.uintptr_t, call C.driftd_call, given unsafe.Pointer) C.driftd_status {
	return guarded(call, func(c Call) error {
		args := (*C.driftd_refresh_args)(given)
		request := Refresh{Full: args.flags&C.DRIFTD_REFRESH_FULL != 0, Cursor: text(args.cursor)}
		if args.kind_count != 0 {
			for _, kind := range unsafe.Slice(args.kinds, int(args.kind_count)) {
				request.Kinds = append(request.Kinds, text(kind))
			}
		}
		return instance(self).Refresh(c, request)
	})
}

//export goHealth
func goHealth(self C.uintptr_t, call C.driftd_call) C.driftd_status {
	return guarded(call, func(c Call) error { return instance(self).Health(c) })
}

//export goWatch
func goWatch(self C.uintptr_t, call C.driftd_call) C.driftd_status {
	return guarded(call, func(c Call) error { return instance(self).Watch(c) })
}

//export goClose
func goClose(self C.uintptr_t) { cgo.Handle(self).Delete() }

// main is required by -buildmode=c-shared and is never called.
func main() {}
