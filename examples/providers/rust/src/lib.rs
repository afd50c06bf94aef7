// SPDX-License-Identifier: Apache-2.0
//! A provider in Rust. It reads a folder: each regular file in it is one resource of the kind `file`.
//! The attribute `digest` tells that the content of a file changed, but not what the content is. It is an HMAC-SHA256
//! with a secret key from the settings, because somebody could guess a short content from its plain hash.
mod driftd;
#[cfg(test)]
mod tests;

use driftd::{Call, Failure, Identity, Instance, Outcome, Plugin, Record, Refresh, Unread};
use hmac::{Hmac, Mac};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::os::unix::{fs::PermissionsExt, io::AsRawFd};
use std::{collections::BTreeSet, fs, io};

/// A larger file gets no digest.
const MAX_BYTES: u64 = 16 << 20;

// ---- What the provider offers.

static PLUGIN: Plugin = Plugin {
    describe: r#"{"id": "files", "version": "0.1.0", "types": ["files"], "kinds": ["file"],
        "extensions": [{"id": "driftd.watch", "revision": 1}], "concurrency": 2, "metrics": []}"#,
    documents: &[("settings", SETTINGS_SCHEMA), ("file", FILE_SCHEMA)],
    open,
};

const SETTINGS_SCHEMA: &str = r#"{
    "type": "object", "required": ["path", "key"], "additionalProperties": false, "properties": {
        "path": {"type": "string", "format": "path", "description": "the folder"},
        "key": {"type": "string", "writeOnly": true, "description": "key of the digests, by reference"}}}"#;

const FILE_SCHEMA: &str = r#"{
    "schema": "driftd-schema/1", "kind": "file", "revision": 1, "class": "config", "title": "a file", "attributes": {
        "executable": {"type": "bool"}, "size": {"type": "int"}, "digest": {"type": "string"}}}"#;

// Defines the only exported symbol.
driftd_provider!(PLUGIN);

// ---- One opened backend.

/// It does not change after open, so its calls may run at the same time.
struct Folder {
    path: String,
    /// Stands for the secret key.
    token: String,
}

/// Reads the settings and fails if one is missing. The secret itself is asked for in each call that needs it.
fn open(settings: &str) -> Outcome<Box<dyn Instance>> {
    let json: serde_json::Value = serde_json::from_str(settings).unwrap_or_default();
    let text = |name: &str| json[name].as_str().unwrap_or_default().to_string();
    let folder = Folder { path: text("path"), token: text("key") };
    if folder.path.is_empty() || folder.token.is_empty() {
        return Err(Failure::new(driftd::INVALID, "settings: expected the texts `path` and `key`"));
    }
    Ok(Box::new(folder))
}

/// Returns the HMAC-SHA256 of a content as hex digits.
fn digest(key: &[u8], content: &[u8]) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(content);
    mac.finalize().into_bytes().iter().map(|byte| format!("{:02x}", byte)).collect()
}

/// Marks the digest as unread, with the reason. An unread attribute counts as unknown, never as a drift.
fn unread_digest(code: driftd::Status, reason: String) -> Option<Unread> {
    Some(Unread { path: "digest".into(), code, reason })
}

impl Folder {
    /// Makes the failure of a call. Its code tells the host what to do next. DENIED also names the right that is
    /// missing.
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
    fn read_file(&self, call: &Call, key: &[u8], name: &str) -> Outcome<Option<Record>> {
        if call.cancelled() {
            return Err(Failure::new(driftd::CANCELLED, format!("stopped before {}", name)));
        }
        // The time must be taken before the system is asked.
        let observed_ns = call.now();
        let path = format!("{}/{}", self.path, name);
        let info = match fs::symlink_metadata(&path) {
            Ok(info) => info,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // If the folder itself is missing, list() fails, and so does the call.
                self.list()?;
                return Ok(None);
            }
            Err(error) => return Err(self.fail(error)),
        };
        if !info.is_file() {
            return Ok(None);
        }
        let executable = info.permissions().mode() & 0o111 != 0;
        let mut body = serde_json::json!({"executable": executable, "size": info.len()});
        let mut unread = None;
        if info.len() > MAX_BYTES {
            unread = unread_digest(driftd::UNSUPPORTED, "above 16 MiB".into());
        } else if let Ok(content) = fs::read(&path) {
            body["digest"] = digest(key, &content).into();
        } else {
            unread = unread_digest(driftd::DENIED, format!("grant r on {}", path));
        }
        Ok(Some(Record { kind: "file".into(), id: name.into(), body: body.to_string(), unread, observed_ns }))
    }
}

impl Instance for Folder {
    /// Lists the folder and emits each file in it.
    fn refresh(&self, call: &Call, request: &Refresh) -> Outcome<()> {
        if !request.wants("file") {
            return Ok(());
        }
        let key = call.secret(&self.token)?;
        let mut count = 0;
        for name in self.list()? {
            if let Some(record) = self.read_file(call, &key, &name)? {
                // False: the host wants no more records now. Then the kind is not complete.
                if !call.emit(&record)? {
                    return Ok(());
                }
                count += 1;
            }
        }
        // Everything was listed and nothing failed, so the host may take what is missing for deleted.
        call.complete("file", count)
    }

    /// Reads some resources by their identity. Each of them must be answered, also if emit() returns false.
    fn read(&self, call: &Call, ids: &[Identity]) -> Outcome<()> {
        let key = call.secret(&self.token)?;
        // Fails if the folder is missing, because then nothing is known about the resources.
        let names = self.list()?;
        for id in ids {
            let mut record = None;
            if id.kind == "file" && names.contains(&id.id) {
                record = self.read_file(call, &key, &id.id)?;
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

    /// Reports that the system is up if the folder can be listed.
    fn health(&self, _: &Call) -> Outcome<()> {
        self.list()?;
        Ok(())
    }

    /// Watches the folder until the host cancels the call. Each change sends a hint, and the agent refreshes at once.
    fn watch(&self, call: &Call) -> Outcome<()> {
        // After these events the agent must refresh. IN_ONLYDIR refuses a path that is not a folder.
        let watched_events = AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_ATTRIB
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        let flags = InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC;
        let events = Inotify::init(flags).map_err(|e| self.fail(e.into()))?;
        while !call.cancelled() {
            // The watch is set each time, because the path may lead to another folder by now.
            events.add_watch(self.path.as_str(), watched_events).map_err(|e| self.fail(e.into()))?;
            // The first hint is for changes before the watch was set.
            call.hint()?;
            if call.wait(events.as_raw_fd()) {
                // The events are only taken out of the queue: the refresh lists the folder anyway.
                let _ = events.read_events();
            }
        }
        Ok(())
    }
}
