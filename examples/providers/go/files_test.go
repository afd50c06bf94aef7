// SPDX-License-Identifier: Apache-2.0
package main

import "testing"

func TestDigestIsHmacSha256OfTheContentUnderTheKey(t *testing.T) {
	const expected = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"
	if found := digest([]byte("key"), []byte("The quick brown fox jumps over the lazy dog")); found != expected {
		t.Errorf("expected %s, found %s", expected, found)
	}
}

func TestOpenRefusesMissingSettings(t *testing.T) {
	for _, settings := range []string{"", "null", "{}", `["/etc"]`, `{"path": "/etc"}`, `{"path": "", "key": ""}`} {
		instance, err := plugin.Open([]byte(settings))
		if err == nil || instance != nil {
			t.Errorf("settings %q: expected an error, found none", settings)
		}
	}
}
