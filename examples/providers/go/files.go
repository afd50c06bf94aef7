// SPDX-License-Identifier: Apache-2.0
// A provider in Go. It shows a folder: each regular file in it is one resource of the kind `file`.
// The attribute `digest` shows that a content changed without showing the content. It is an HMAC-SHA256 under a secret
// setting, because the plain hash of a short text can be guessed.
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

// Bytes. A larger file gets no digest.
const maxSize = 16 << 20

// The changes of the folder that make the agent refresh.
const changes = syscall.IN_CLOSE_WRITE | syscall.IN_ATTRIB | syscall.IN_MOVE | syscall.IN_DELETE |
	syscall.IN_MOVE_SELF | syscall.IN_ONLYDIR

// What the provider offers.
var plugin = Plugin{
	Describe: `{"id": "files", "version": "0.1.0", "types": ["files"], "kinds": ["file"], "concurrency": 2,
		"extensions": [{"id": "driftd.watch", "revision": 1}], "metrics": []}`,
	Documents: map[string]string{
		"settings": `{"type": "object", "required": ["path", "key"], "additionalProperties": false, "properties": {
			"path": {"type": "string", "format": "path", "description": "the folder"},
			"key": {"type": "string", "writeOnly": true, "description": "key of the digests, by reference"}}}`,
		"file": `{"schema": "driftd-schema/1", "kind": "file", "revision": 1, "class": "config", "title": "a file",
			"attributes": {"executable": {"type": "bool"}, "size": {"type": "int"}, "digest": {"type": "string"}}}`,
	},
	Open: open,
}

// folder is one opened backend. It does not change after open, so its calls may run at the same time.
type folder struct {
	Path string
	Key  string // a token that stands for the secret, for Call.WithSecret
}

// open reads the settings. Without them it opens nothing. The secret is asked for in the calls that need it.
func open(settings []byte) (Instance, error) {
	var f folder
	if err := json.Unmarshal(settings, &f); err != nil || f.Path == "" || f.Key == "" {
		return nil, &Failure{Code: Invalid, Text: "settings: expected the texts `path` and `key`"}
	}
	return f, nil
}

// fail gives an error the code that tells the host what to do next. A missing right is named.
func (f folder) fail(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &Failure{Code: Denied, Text: err.Error(), Right: "r-x on " + f.Path}
	}
	return Or(Unavailable, err)
}

// list returns the entries of the folder. A missing folder is an error, not an empty list.
func (f folder) list() ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(f.Path)
	return entries, f.fail(err)
}

// digest returns the HMAC-SHA256 of a text as hex digits.
func digest(key, text []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil))
}

// isMissing says that there is no such file, or that there can be none of this name.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL)
}

// look reads one file. It returns nil if the file is gone or not a regular one.
func (f folder) look(call Call, key []byte, name string) (*Record, error) {
	// The time must be taken before the system is asked.
	record := &Record{Kind: "file", ID: name, ObservedNs: call.Now()}
	path := filepath.Join(f.Path, name)
	at, err := os.Lstat(path)
	if isMissing(err) {
		// Perhaps the whole folder is missing. Then the call fails.
		return nil, f.Health(call)
	}
	if err != nil {
		return nil, f.fail(err)
	}
	if !at.Mode().IsRegular() {
		return nil, nil
	}
	body := map[string]any{"executable": at.Mode()&0111 != 0, "size": at.Size()}
	if at.Size() > maxSize {
		// The digest exists but is not known. It is emitted as unread, which is never a drift.
		record.Unread = &Unread{Path: "digest", Code: Unsupported, Reason: "above 16 MiB"}
	} else if text, err := os.ReadFile(path); err != nil {
		record.Unread = &Unread{Path: "digest", Code: Denied, Reason: "grant r on " + path}
	} else {
		body["digest"] = digest(key, text)
	}
	record.Body, err = json.Marshal(body)
	return record, err
}

// Refresh lists the folder.
func (f folder) Refresh(call Call, request Refresh) error {
	if !request.Wants("file") {
		return nil
	}
	return call.WithSecret(f.Key, func(key []byte) error {
		entries, err := f.list()
		if err != nil {
			return err
		}
		count := 0
		for _, entry := range entries {
			record, err := f.look(call, key, entry.Name())
			if err != nil {
				return err
			}
			if record == nil {
				continue
			}
			// ErrFinishSoon also ends the loop: the host wants no more records now.
			if err := call.Emit(*record); err != nil {
				return err
			}
			count++
		}
		// Everything was listed and nothing failed. The host takes what is missing for deleted.
		return call.Complete("file", count)
	})
}

// Read reads some resources by their identity. Each must be answered.
func (f folder) Read(call Call, ids []Identity) error {
	return call.WithSecret(f.Key, func(key []byte) error {
		// A missing folder says nothing about its content.
		if err := f.Health(call); err != nil {
			return err
		}
		for _, id := range ids {
			var record *Record
			var err error
			if id.Kind == "file" && filepath.Base(id.ID) == id.ID {
				record, err = f.look(call, key, id.ID)
			}
			if err := call.Settle(id, record, err); err != nil {
				return err
			}
		}
		return nil
	})
}

// Health says that the system is up if the folder can be listed.
func (f folder) Health(Call) error {
	_, err := f.list()
	return err
}

// Watch watches the folder until the host cancels the call. Each change sends a hint, and the agent refreshes at once.
func (f folder) Watch(call Call) error {
	events, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		return f.fail(err)
	}
	defer syscall.Close(events)
	drain := make([]byte, 4096)
	for !call.Cancelled() {
		// The watch is set each time, because the path may lead to another folder by now.
		if _, err := syscall.InotifyAddWatch(events, f.Path, changes); err != nil {
			return f.fail(err)
		}
		// The first hint is for changes before the watch was set.
		if err := call.Hint(); err != nil {
			return err
		}
		if call.Wait(events) {
			_, _ = syscall.Read(events, drain)
		}
	}
	return nil
}
