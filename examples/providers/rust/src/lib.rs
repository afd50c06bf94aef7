// SPDX-License-Identifier: Apache-2.0
//! A provider in Rust: a folder, one kind `file`. Its attribute `digest` tells that a content changed without showing
//! it: HMAC-SHA256 under a secret setting, since the plain hash of a short text can be guessed.
mod driftd;
#[cfg(test)]
mod tests;
use driftd::{Call, Failure, Identity, Instance, Outcome, Plugin, Record, Refresh, Unread};
use hmac::{Hmac, Mac};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::os::unix::{fs::PermissionsExt, io::AsRawFd};
use std::{collections::BTreeSet, fs, io};

const MOST: u64 = 16 << 20; // bytes; a larger file gets no digest
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
driftd_provider!(PLUGIN);

struct Folder {
    path: String,
    token: String,
}
fn open(settings: &str) -> Outcome<Box<dyn Instance>> {
    let json: serde_json::Value = serde_json::from_str(settings).unwrap_or_default();
    let text = |name: &str| json[name].as_str().map(String::from);
    match (text("path"), text("key")) {
        (Some(path), Some(token)) => Ok(Box::new(Folder { path, token })),
        _ => Err(Failure::new(driftd::INVALID, "settings: expected the texts `path` and `key`")),
    }
}
fn digest(key: &[u8], text: &[u8]) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text);
    mac.finalize().into_bytes().iter().map(|byte| format!("{:02x}", byte)).collect()
}
impl Folder {
    fn fail(&self, error: io::Error) -> Failure { // the code tells the host what to do next; a missing right is named
        let text = format!("{}: {}", self.path, error);
        if error.kind() == io::ErrorKind::PermissionDenied {
            return Failure { code: driftd::DENIED, text, right: format!("r-x on {}", self.path) };
        }
        Failure::new(driftd::UNAVAILABLE, text)
    }
    fn list(&self) -> Outcome<BTreeSet<String>> { // a folder that is away is not an empty one
        let entries = fs::read_dir(&self.path).map_err(|e| self.fail(e))?;
        let names = entries.map(|e| e.map(|e| e.file_name().into_string().ok())).collect::<Result<Vec<_>, _>>();
        Ok(names.map_err(|e| self.fail(e))?.into_iter().flatten().collect())
    }
    /// None: no regular file, or gone.
    fn look(&self, call: &Call, key: &[u8], name: &str) -> Outcome<Option<Record>> {
        if call.cancelled() {
            return Err(Failure::new(driftd::CANCELLED, format!("stopped before {}", name)));
        }
        let (observed_ns, path) = (call.now(), format!("{}/{}", self.path, name));
        let at = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.list().map(|_| None), // or the folder
            other => other.map_err(|e| self.fail(e))?,
        };
        if !at.is_file() {
            return Ok(None);
        }
        let mut body = serde_json::json!({"executable": at.permissions().mode() & 0o111 != 0, "size": at.len()});
        let not_read = |code, reason| Some(Unread { path: "digest".into(), code, reason }); // never a drift
        let unread = match if at.len() > MOST { None } else { Some(fs::read(&path)) } {
            None => not_read(driftd::UNSUPPORTED, "above 16 MiB".into()),
            Some(Err(_)) => not_read(driftd::DENIED, format!("grant r on {}", path)),
            Some(Ok(text)) => {
                body["digest"] = digest(key, &text).into();
                None
            }
        };
        Ok(Some(Record { kind: "file".into(), id: name.into(), body: body.to_string(), unread, observed_ns }))
    }
}
impl Instance for Folder {
    fn refresh(&self, call: &Call, request: &Refresh) -> Outcome<()> {
        let (key, mut count) = (call.secret(&self.token)?, 0);
        for name in self.list()?.iter().filter(|_| request.wants("file")) {
            if let Some(record) = self.look(call, &key, name)? {
                count += 1;
                if !call.emit(&record)? {
                    return Ok(()); // the host wants no more: not complete
                }
            }
        }
        if request.wants("file") { call.complete("file", count) } else { Ok(()) } // all were seen: the others are gone
    }
    fn read(&self, call: &Call, ids: &[Identity]) -> Outcome<()> {
        let (key, names) = (call.secret(&self.token)?, self.list()?);
        for id in ids {
            let there = id.kind == "file" && names.contains(&id.id);
            match if there { self.look(call, &key, &id.id)? } else { None } {
                Some(record) => call.emit(&record).map(|_| ())?,
                None => call.not_found(id),
            }
        }
        Ok(())
    }
    fn health(&self, _: &Call) -> Outcome<()> { self.list().map(|_| ()) }
    fn watch(&self, call: &Call) -> Outcome<()> {
        use AddWatchFlags as On;
        let what = On::IN_CLOSE_WRITE | On::IN_ATTRIB | On::IN_MOVE | On::IN_DELETE | On::IN_MOVE_SELF | On::IN_ONLYDIR;
        let events = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).map_err(|e| self.fail(e.into()))?;
        while !call.cancelled() { // sets it each time: it may be another folder by now
            events.add_watch(self.path.as_str(), what).map_err(|e| self.fail(e.into()))?;
            call.hint()?; // at first for what changed before the watch was set
            while call.wait(events.as_raw_fd()) && events.read_events().is_err() {}
        }
        Ok(())
    }
}
