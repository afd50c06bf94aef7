// SPDX-License-Identifier: Apache-2.0
// A provider in Go: a folder, one kind `file`. Its attribute `digest` tells that a content changed without showing it:
// HMAC-SHA256 under a secret setting, since the plain hash of a short text can be guessed.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const most = 16 << 20 // bytes; a larger file gets no digest
const changes = syscall.IN_CLOSE_WRITE | syscall.IN_ATTRIB | syscall.IN_MOVE | syscall.IN_DELETE |
	syscall.IN_MOVE_SELF | syscall.IN_ONLYDIR

var plugin = Plugin{
	Describe: `{"id": "files", "version": "0.1.0", "types": ["files"], "kinds": ["file"], "concurrency": 2,
		"extensions": [{"id": "driftd.watch", "revision": 1}], "metrics": []}`,
	Documents: map[string]string{"settings": `{"type": "object", "required": ["path", "key"], "properties": {
		"path": {"type": "string", "format": "path", "description": "the folder"}, "key": {"type": "string",
		"writeOnly": true, "description": "key of the digests, by reference"}}, "additionalProperties": false}`,
		"file": `{"schema": "driftd-schema/1", "kind": "file", "revision": 1, "class": "config", "title": "a file",
		"attributes": {"executable": {"type": "bool"}, "size": {"type": "int"}, "digest": {"type": "string"}}}`},
	Open: func(settings []byte) (Instance, error) {
		f := new(folder)
		return f, json.Unmarshal(settings, f)
	},
}

type folder struct{ Path, Key string } // Key is a token for Call.WithSecret

func (f folder) fail(err error) error { // the code tells the host what to do next; a missing right is named
	if errors.Is(err, fs.ErrPermission) {
		return &Failure{Denied, err.Error(), "r-x on " + f.Path}
	}
	return Or(Unavailable, err)
}
func (f folder) list() ([]fs.DirEntry, error) { // a folder that is away is not an empty one
	entries, err := os.ReadDir(f.Path)
	return entries, f.fail(err)
}
func digest(key, text []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil))
}
func (f folder) look(call Call, key []byte, name string) (*Record, error) { // nil: gone, or no regular file
	now, path := call.Now(), filepath.Join(f.Path, name)
	at, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL) {
		return nil, f.Health(call) // there is no such file; or the whole folder is away
	} else if err != nil || !at.Mode().IsRegular() {
		return nil, f.fail(err)
	}
	body := map[string]any{"executable": at.Mode()&0111 != 0, "size": at.Size()}
	record := &Record{Kind: "file", ID: name, ObservedNs: now}
	if at.Size() > most {
		record.Unread = &Unread{"digest", Unsupported, "above 16 MiB"} // there but not known: never a drift
	} else if text, err := os.ReadFile(path); err != nil {
		record.Unread = &Unread{"digest", Denied, "grant r on " + path}
	} else {
		body["digest"] = digest(key, text)
	}
	record.Body, err = json.Marshal(body)
	return record, err
}
func (f folder) Refresh(call Call, request Refresh) error {
	return call.WithSecret(f.Key, func(key []byte) error {
		entries, err := f.list()
		count := 0
		for i := 0; err == nil && i < len(entries); i++ {
			record, failed := f.look(call, key, entries[i].Name())
			if err = failed; record != nil && request.Wants("file") {
				count++
				err = call.Emit(*record)
			}
		}
		if err == nil && request.Wants("file") {
			err = call.Complete("file", count) // all were seen: the others are gone
		}
		return err
	})
}
func (f folder) Read(call Call, ids []Identity) error {
	return call.WithSecret(f.Key, func(key []byte) error {
		err := f.Health(call)
		for i := 0; err == nil && i < len(ids); i++ {
			var record *Record
			if name := ids[i].ID; ids[i].Kind == "file" && filepath.Base(name) == name {
				record, err = f.look(call, key, name)
			}
			err = call.Settle(ids[i], record, err)
		}
		return err
	})
}
func (f folder) Health(Call) error {
	_, err := f.list()
	return err
}
func (f folder) Watch(call Call) error {
	events, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	defer syscall.Close(events)
	for err == nil && !call.Cancelled() { // sets it each time: it may be another folder by now
		if _, err = syscall.InotifyAddWatch(events, f.Path, changes); err == nil {
			err = call.Hint() // at first for what changed before the watch was set
		}
		if err == nil && call.Wait(events) {
			_, _ = syscall.Read(events, make([]byte, 4096))
		}
	}
	return f.fail(err)
}
