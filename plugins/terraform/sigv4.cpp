// SPDX-License-Identifier: Apache-2.0
#include "terraform/sigv4.hpp"

#include <openssl/hmac.h>
#include <ctime>

#include "common/checked_digest.hpp"

namespace driftd::terraform {
namespace {

constexpr const char* kEmptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string hex(const unsigned char* bytes, unsigned size) {
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    out += "0123456789abcdef"[bytes[i] >> 4];
    out += "0123456789abcdef"[bytes[i] & 15];
  }
  return out;
}

std::string sha256(const std::string& text) {
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  common::require_digest(EVP_Digest(text.data(), text.size(), sum, &size, EVP_sha256(), nullptr) == 1);
  return hex(sum, size);
}

std::string hmac(const std::string& key, const std::string& text) {
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  common::require_digest(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                              reinterpret_cast<const unsigned char*>(text.data()), text.size(), sum, &size) != nullptr);
  return {reinterpret_cast<const char*>(sum), size};
}

}  // namespace

std::vector<std::string> sign_v4(const AwsRequest& request, const AwsCredentials& credentials) {
  const std::time_t seconds = request.now_ns / 1'000'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
  const std::string time = stamp, day = time.substr(0, 8);

  std::string headers = "host:" + request.host + "\nx-amz-content-sha256:" + kEmptyBody + "\nx-amz-date:" + time + "\n";
  std::string names = "host;x-amz-content-sha256;x-amz-date";
  if (!credentials.session_token.empty()) {
    headers += "x-amz-security-token:" + credentials.session_token + "\n";
    names += ";x-amz-security-token";
  }
  const std::string canonical =
      "GET\n" + request.path + "\n" + request.query + "\n" + headers + "\n" + names + "\n" + kEmptyBody;
  const std::string scope = day + "/" + request.region + "/" + request.service + "/aws4_request";
  const std::string to_sign = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + sha256(canonical);
  std::string key =
      hmac(hmac(hmac(hmac("AWS4" + credentials.secret_key, day), request.region), request.service), "aws4_request");
  const std::string signature = hmac(key, to_sign);
  std::vector<std::string> out = {
      "x-amz-date: " + time, std::string("x-amz-content-sha256: ") + kEmptyBody,
      "Authorization: AWS4-HMAC-SHA256 Credential=" + credentials.access_key + "/" + scope +
          ", SignedHeaders=" + names + ", Signature=" +
          hex(reinterpret_cast<const unsigned char*>(signature.data()), static_cast<unsigned>(signature.size()))};
  if (!credentials.session_token.empty()) out.push_back("x-amz-security-token: " + credentials.session_token);
  return out;
}

}  // namespace driftd::terraform
