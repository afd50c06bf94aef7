// SPDX-License-Identifier: Apache-2.0
// A provider in Go. It reads a folder: each regular file in it is one resource of the kind `file`.
// The attribute `digest` tells that the content of a file changed, but not what the content is. It is an HMAC-SHA256
// with a secret key from the settings, because somebody could guess a short content from its plain hash.
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

// A larger file gets no digest.
const maxBytes = 16 << 20

// The inotify events after which the agent must refresh. IN_ONLYDIR refuses a path that is not a folder.
const watchedEvents = syscall.IN_CLOSE_WRITE | syscall.IN_ATTRIB | syscall.IN_MOVE | syscall.IN_DELETE |
	syscall.IN_MOVE_SELF | syscall.IN_ONLYDIR

// plugin is what the provider offers. The binding looks for this name.
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
	Key  string // a token that stands for the secret key; see Call.WithSecret
}

// open reads the settings and fails if one is missing. The secret itself is asked for in each call that needs it.
func open(settings []byte) (Instance, error) {
	var f folder
	if err := json.Unmarshal(settings, &f); err != nil || f.Path == "" || f.Key == "" {
		return nil, &Failure{Code: Invalid, Text: "settings: expected the texts `path` and `key`"}
	}
	return f, nil
}

// fail gives an error the code that tells the host what to do next. Denied also names the right that is missing.
// Returns nil for nil.
func (f folder) fail(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &Failure{Code: Denied, Text: err.Error(), Right: "r-x on " + f.Path}
	}
	return WithCode(Unavailable, err)
}

// list returns the entries of the folder. A missing folder is an error, not an empty list.
func (f folder) list() ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(f.Path)
	return entries, f.fail(err)
}

// digest returns the HMAC-SHA256 of a content as hex digits.
func digest(key, content []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(content)
	return hex.EncodeToString(mac.Sum(nil))
}

// isMissing returns true if there is no such file, or if no file can have such a name.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL)
}

// readFile reads one file. It returns nil if the file is gone or not a regular one.
func (f folder) readFile(call Call, key []byte, name string) (*Record, error) {
	// The time must be taken before the system is asked.
	record := &Record{Kind: "file", ID: name, ObservedNs: call.Now()}
	path := filepath.Join(f.Path, name)
	info, err := os.Lstat(path)
	if isMissing(err) {
		// If the folder itself is missing, list fails, and so does the call.
		_, err := f.list()
		return nil, err
	}
	if err != nil {
		return nil, f.fail(err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil
	}
	body := map[string]any{"executable": info.Mode()&0111 != 0, "size": info.Size()}
	if info.Size() > maxBytes {
		// An attribute that is emitted as unread counts as unknown, never as a drift.
		record.Unread = &Unread{Path: "digest", Code: Unsupported, Reason: "above 16 MiB"}
	} else if content, err := os.ReadFile(path); err != nil {
		record.Unread = &Unread{Path: "digest", Code: Denied, Reason: "grant r on " + path}
	} else {
		body["digest"] = digest(key, content)
	}
	record.Body, err = json.Marshal(body)
	return record, err
}

// Refresh lists the folder and emits each file in it.
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
			record, err := f.readFile(call, key, entry.Name())
			if err != nil {
				return err
			}
			if record == nil {
				continue
			}
			// ErrFinishSoon ends the loop too: the host wants no more records now.
			if err := call.Emit(*record); err != nil {
				return err
			}
			count++
		}
		// Everything was listed and nothing failed, so the host may take what is missing for deleted.
		return call.Complete("file", count)
	})
}

// Read reads some resources by their identity. Each of them must be answered.
func (f folder) Read(call Call, ids []Identity) error {
	return call.WithSecret(f.Key, func(key []byte) error {
		// Fails if the folder is missing, because then nothing is known about the resources.
		if _, err := f.list(); err != nil {
			return err
		}
		for _, id := range ids {
			var record *Record
			if id.Kind == "file" && filepath.Base(id.ID) == id.ID {
				var err error
				if record, err = f.readFile(call, key, id.ID); err != nil {
					return err
				}
			}
			if err := call.Answer(id, record); err != nil {
				return err
			}
		}
		return nil
	})
}

// Health reports that the system is up if the folder can be listed.
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
	dropped := make([]byte, 4096)
	for !call.Cancelled() {
		// The watch is set each time, because the path may lead to another folder by now.
		if _, err := syscall.InotifyAddWatch(events, f.Path, watchedEvents); err != nil {
			return f.fail(err)
		}
		// The first hint is for changes before the watch was set.
		if err := call.Hint(); err != nil {
			return err
		}
		if call.Wait(events) {
			// The events are only taken out of the queue: the refresh lists the folder anyway.
			_, _ = syscall.Read(events, dropped)
		}
	}
	return nil
}
