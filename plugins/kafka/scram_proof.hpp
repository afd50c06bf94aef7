// SPDX-License-Identifier: Apache-2.0
// The proof of a SCRAM login (RFC 5802, RFC 7677). Pure: no I/O.
#pragma once

#include <string>
#include <string_view>

namespace driftd::kafka {

/// What a client sends and expects once the server has named salt and iterations.
struct ScramProof {
  std::string client_final;  ///< `c=biws,r=…,p=…`
  std::string server_final;  ///< what only a server that knows the password can answer: `v=…`
};

/// `mechanism` is SCRAM-SHA-256 or SCRAM-SHA-512; `client_first` the message that was sent, `server_first` its answer.
/// Throws CORRUPT if the answer does not go on with `nonce`, and for more than a million iterations.
ScramProof scram_proof(const std::string& mechanism, const std::string& password, std::string_view client_first,
                       std::string_view server_first, std::string_view nonce);

}  // namespace driftd::kafka
