// SPDX-License-Identifier: Apache-2.0
use super::*;

#[test]
fn digest_is_hmac_sha256_of_the_content_under_the_key() {
    let fox = digest(b"key", b"The quick brown fox jumps over the lazy dog");
    assert_eq!(fox, "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
}

#[test]
fn settings_without_a_key_are_refused() {
    assert_eq!(open(r#"{"path": "/etc"}"#).err().map(|failure| failure.code), Some(driftd::INVALID));
}
