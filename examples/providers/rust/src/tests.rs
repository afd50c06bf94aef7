// SPDX-License-Identifier: Apache-2.0
use super::*;

#[test]
fn digest_is_hmac_sha256_of_the_content_under_the_key() {
    let found = digest(b"key", b"The quick brown fox jumps over the lazy dog");
    assert_eq!(found, "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
}

#[test]
fn missing_settings_are_refused() {
    for settings in ["", "null", "{}", r#"["/etc"]"#, r#"{"path": "/etc"}"#, r#"{"path": "", "key": ""}"#] {
        assert_eq!(open(settings).err().map(|failure| failure.code), Some(driftd::INVALID), "settings: {}", settings);
    }
}
