// SPDX-License-Identifier: Apache-2.0
//! A provider in Rust. It shows a folder: each regular file in it is one resource of the kind `file`.
//! The attribute `digest` shows that a content changed without showing the content. It is an HMAC-SHA256 under a secret
//! setting, because the plain hash of a short text can be guessed.
mod driftd;
#[cfg(test)]
mod tests;

use driftd::{Call, Failure, Identity, Instance, Outcome, Plugin, Record, Refresh, Unread};
use hmac::{Hmac, Mac};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::os::unix::{fs::PermissionsExt, io::AsRawFd};
use std::{collections::BTreeSet, fs, io};

/// Bytes. A larger file gets no digest.
const MAX_SIZE: u64 = 16 << 20;

// ---- What the provider offers.

static PLUGIN: Plugin = Plugin {
    describe: r#"{"id": "files", "version": "0.1.0", "types": ["files"], "kinds": ["file"],
        "extensions": [{"id": "driftd.watch", "revision": 1}], "concurrency": 2, "metrics": []}"#,
    documents: &[("settings", SETTINGS), ("file", FILE)],
    open,
};

const SETTINGS: &str = r#"{"type": "object", "required": ["path", "key"], "additionalProperties": false, "properties": {
    "path": {"type": "string", "format": "path", "description": "the folder"},
    "key": {"type": "string", "writeOnly": true, "description": "key of the digests, by reference"}}}"#;

const FILE: &str = r#"{"schema": "driftd-schema/1", "kind": "file", "revision": 1, "class": "config", "title": "a file",
    "attributes": {"executable": {"type": "bool"}, "size": {"type": "int"}, "digest": {"type": "string"}}}"#;

// Defines the only exported symbol.
driftd_provider!(PLUGIN);

// ---- One opened backend.

/// It does not change after open, so its calls may run at the same time.
struct Folder {
    path: String,
    /// Stands for the secret.
    token: String,
}

/// Reads the settings. Without them it opens nothing. The secret is asked for in the calls that need it.
fn open(settings: &str) -> Outcome<Box<dyn Instance>> {
    let json: serde_json::Value = serde_json::from_str(settings).unwrap_or_default();
    let text = |name: &str| json[name].as_str().unwrap_or_default().to_string();
    let folder = Folder { path: text("path"), token: text("key") };
    if folder.path.is_empty() || folder.token.is_empty() {
        return Err(Failure::new(driftd::INVALID, "settings: expected the texts `path` and `key`"));
    }
    Ok(Box::new(folder))
}

/// Returns the HMAC-SHA256 of a text as hex digits.
fn digest(key: &[u8], text: &[u8]) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text);
    mac.finalize().into_bytes().iter().map(|byte| format!("{:02x}", byte)).collect()
}

/// The digest exists but is not known. It is emitted as unread, which is never a drift.
fn unread_digest(code: driftd::Status, reason: String) -> Option<Unread> {
    Some(Unread { path: "digest".into(), code, reason })
}

impl Folder {
    /// Makes the failure of a call. The code tells the host what to do next; a missing right is named.
    fn fail(&self, error: io::Error) -> Failure {
        let text = format!("{}: {}", self.path, error);
        if error.kind() == io::ErrorKind::PermissionDenied {
            return Failure { code: driftd::DENIED, text, right: format!("r-x on {}", self.path) };
        }
        Failure::new(driftd::UNAVAILABLE, text)
    }

    /// Returns the names in the folder. Fails if it cannot be listed: a missing folder is not an empty one.
    fn list(&self) -> Outcome<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&self.path).map_err(|e| self.fail(e))? {
            let name = entry.map_err(|e| self.fail(e))?.file_name();
            // A name that is not UTF-8 is left out: the host would refuse it.
            if let Ok(name) = name.into_string() {
                names.insert(name);
            }
        }
        Ok(names)
    }

    /// Reads one file. Returns None if it is gone or not a regular file.
    fn look(&self, call: &Call, key: &[u8], name: &str) -> Outcome<Option<Record>> {
        if call.cancelled() {
            return Err(Failure::new(driftd::CANCELLED, format!("stopped before {}", name)));
        }
        // The time must be taken before the system is asked.
        let observed_ns = call.now();
        let path = format!("{}/{}", self.path, name);
        let at = match fs::symlink_metadata(&path) {
            Ok(at) => at,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Perhaps the whole folder is missing. Then the call fails.
                self.list()?;
                return Ok(None);
            }
            Err(error) => return Err(self.fail(error)),
        };
        if !at.is_file() {
            return Ok(None);
        }
        let executable = at.permissions().mode() & 0o111 != 0;
        let mut body = serde_json::json!({"executable": executable, "size": at.len()});
        let mut unread = None;
        if at.len() > MAX_SIZE {
            unread = unread_digest(driftd::UNSUPPORTED, "above 16 MiB".into());
        } else if let Ok(text) = fs::read(&path) {
            body["digest"] = digest(key, &text).into();
        } else {
            unread = unread_digest(driftd::DENIED, format!("grant r on {}", path));
        }
        Ok(Some(Record { kind: "file".into(), id: name.into(), body: body.to_string(), unread, observed_ns }))
    }
}

impl Instance for Folder {
    /// Lists the folder.
    fn refresh(&self, call: &Call, request: &Refresh) -> Outcome<()> {
        if !request.wants("file") {
            return Ok(());
        }
        let key = call.secret(&self.token)?;
        let mut count = 0;
        for name in self.list()? {
            if let Some(record) = self.look(call, &key, &name)? {
                // False: the host wants no more records now. The kind is not complete then.
                if !call.emit(&record)? {
                    return Ok(());
                }
                count += 1;
            }
        }
        // Everything was listed and nothing failed. The host takes what is missing for deleted.
        call.complete("file", count)
    }

    /// Reads some resources by their identity. Each must be answered.
    fn read(&self, call: &Call, ids: &[Identity]) -> Outcome<()> {
        let key = call.secret(&self.token)?;
        // Fails if the folder is missing: that says nothing about its content.
        let names = self.list()?;
        for id in ids {
            let mut record = None;
            if id.kind == "file" && names.contains(&id.id) {
                record = self.look(call, &key, &id.id)?;
            }
            match record {
                Some(record) => {
                    call.emit(&record)?;
                }
                None => call.not_found(id),
            }
        }
        Ok(())
    }

    /// The system is up if the folder can be listed.
    fn health(&self, _: &Call) -> Outcome<()> {
        self.list()?;
        Ok(())
    }

    /// Watches the folder until the host cancels the call. Each change sends a hint, and the agent refreshes at once.
    fn watch(&self, call: &Call) -> Outcome<()> {
        use AddWatchFlags as On;
        let changes =
            On::IN_CLOSE_WRITE | On::IN_ATTRIB | On::IN_MOVE | On::IN_DELETE | On::IN_MOVE_SELF | On::IN_ONLYDIR;
        let flags = InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC;
        let events = Inotify::init(flags).map_err(|e| self.fail(e.into()))?;
        while !call.cancelled() {
            // The watch is set each time, because the path may lead to another folder by now.
            events.add_watch(self.path.as_str(), changes).map_err(|e| self.fail(e.into()))?;
            // The first hint is for changes before the watch was set.
            call.hint()?;
            while call.wait(events.as_raw_fd()) && events.read_events().is_err() {}
        }
        Ok(())
    }
}
