// SPDX-License-Identifier: Apache-2.0

// Command credentials makes what a server in operator mode needs, in the folder given: `operator.conf` (operator,
// resolver and accounts, to be included by the server's configuration), `user.creds` of an account with JetStream,
// `limited.creds` of a user of it that may send messages of 4,096 bytes at most, and
// `stranger.creds`, whose account the server does not know. And for servers without an operator `user.nk`, the seed of a
// user's nkey, and `user.pub`, its public half.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// account makes an account that the operator has signed. It returns its public key and its JWT. A server refuses
// JetStream for its system account.
func account(name string, operator, key nkeys.KeyPair, jetstream bool) (string, string) {
	public := must(key.PublicKey())
	claims := jwt.NewAccountClaims(public)
	claims.Name = name
	if jetstream {
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1}
	}
	return public, must(claims.Encode(operator))
}

// creds writes a credentials file of a new user of the account. payload is the size of its largest message, -1 for any.
func creds(path string, account nkeys.KeyPair, payload int64) {
	user := must(nkeys.CreateUser())
	claims := jwt.NewUserClaims(must(user.PublicKey()))
	claims.Name = "driftd"
	claims.Limits.Payload = payload
	token := must(claims.Encode(account))
	text := must(jwt.FormatUserConfig(token, must(user.Seed())))
	write(path, text)
}

// write writes a file that only its owner may read.
func write(path string, text []byte) {
	if err := os.WriteFile(path, text, 0o600); err != nil {
		log.Fatal(err)
	}
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: credentials FOLDER")
	}
	folder := os.Args[1]
	operator := must(nkeys.CreateOperator())
	claims := jwt.NewOperatorClaims(must(operator.PublicKey()))
	claims.Name = "test"
	systemKey, appKey, strangerKey := must(nkeys.CreateAccount()), must(nkeys.CreateAccount()), must(nkeys.CreateAccount())
	system, systemToken := account("SYS", operator, systemKey, false)
	claims.SystemAccount = system
	app, appToken := account("APP", operator, appKey, true)
	creds(filepath.Join(folder, "user.creds"), appKey, jwt.NoLimit)
	creds(filepath.Join(folder, "limited.creds"), appKey, 4096)
	creds(filepath.Join(folder, "stranger.creds"), strangerKey, jwt.NoLimit)
	text := fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n  %s: %s\n  %s: %s\n}\n",
		must(claims.Encode(operator)), system, system, systemToken, app, appToken)
	write(filepath.Join(folder, "operator.conf"), []byte(text))
	user := must(nkeys.CreateUser())
	write(filepath.Join(folder, "user.nk"), must(user.Seed()))
	write(filepath.Join(folder, "user.pub"), []byte(must(user.PublicKey())))
}
