// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace driftd::terraform {

/// Credentials for the signature; the session token may be empty.
struct AwsCredentials {
  std::string access_key, secret_key, session_token;
};

/// The request to sign: a GET without a body.
struct AwsRequest {
  std::string host;                    ///< with its port, where the URL has one
  std::string path;                    ///< as in the URL: escaped, from its first `/`
  std::string query;                   ///< as in the URL, sorted by name; empty: none
  std::string region, service = "s3";  ///< part of the signature's scope
  std::int64_t now_ns = 0;             ///< wall clock; the server refuses a time that is minutes off
};

/// Returns the headers that sign the request with AWS Signature Version 4 (x-amz-date, x-amz-content-sha256,
/// Authorization …).
std::vector<std::string> sign_v4(const AwsRequest& request, const AwsCredentials& credentials);

}  // namespace driftd::terraform
