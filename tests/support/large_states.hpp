// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace driftd::test {

/// A part of a file.
struct Slice {
  std::size_t offset = 0, size = 0;  ///< bytes
};

/// Writes a state of about `bytes`: one resource with an instance of a kilobyte of digits for each key, as a for_each
/// over many does. `first` is the name in the first instance. The file is replaced by renaming. Returns where the
/// attributes of each instance are.
inline std::vector<Slice> write_large_state(const std::string& path, std::size_t bytes, int serial,
                                            const std::string& first) {
  std::ofstream out(path + ".new");
  out << R"({"version":4,"terraform_version":"1.9.0","serial":)" << serial
      << R"(,"lineage":"abc","outputs":{},"resources":[{"mode":"managed","type":"aws_instance","name":"fleet","provider":"p","instances":[)";
  const auto begin = static_cast<std::size_t>(out.tellp());
  std::size_t written = 0;
  std::vector<Slice> attributes;
  for (int i = 0; written < bytes; ++i) {
    std::string instance =
        std::string(i == 0 ? "" : ",") + R"({"index_key":)" + std::to_string(i) + R"(,"attributes":)";
    const std::size_t at = instance.size();
    instance += R"({"id":"i-)" + std::to_string(i * 7919ll) + R"(","name":")" + (i == 0 ? first : "host") +
                R"(","user_data":")";
    for (int k = 0; k < 150; ++k)
      instance += std::to_string((i + 1) * 2654435761ull * static_cast<unsigned>(k + 1) % 1000003);
    instance += R"("})";
    attributes.push_back({begin + written + at, instance.size() - at});
    instance += "}";
    written += instance.size();
    out << instance;
  }
  out << "]}]}";
  out.close();
  std::filesystem::rename(path + ".new", path);
  return attributes;
}

/// Random hexadecimal digits, the same in each run.
class HexDigits {
 public:
  std::string operator()(std::size_t count) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) {
      step();
      out += "0123456789abcdef"[state_ >> 32 & 15];
    }
    return out;
  }
  std::uint64_t number(std::uint64_t below) {
    step();
    return (state_ >> 16) % below;
  }

 private:
  void step() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
  }
  std::uint64_t state_ = 88172645463325252ull;
};

/// Returns 30 attributes of every type, about 1.1 KB, as the text of an object. `i` is in one of them.
inline std::string many_attributes(int i, HexDigits& hex) {
  const auto number = [&](std::uint64_t below) { return std::to_string(hex.number(below)); };
  const auto truth = [&] { return hex.number(2) == 0 ? "false" : "true"; };
  const std::string id = "i-0" + hex(16), ip = "10.0." + number(256) + "." + number(256);
  return R"({"ami":"ami-)" + hex(17) + R"(","arn":"arn:aws:ec2:eu-central-1:123456789012:instance/)" + id +
         R"(","associate_public_ip_address":)" + truth() + R"(,"availability_zone":"eu-central-1)" +
         std::string(1, static_cast<char>('a' + hex.number(3))) + R"(","cpu_core_count":)" + number(64) +
         R"(,"cpu_options":[{"amd_sev_snp":"","core_count":)" + number(64) +
         R"(,"threads_per_core":2}],"credit_specification":[],"disable_api_termination":)" + truth() +
         R"(,"ebs_block_device":[{"delete_on_termination":true,"device_name":"/dev/sdf","iops":3000,"volume_id":"vol-)" +
         hex(17) + R"(","volume_size":)" + number(2000) + R"(}],"ebs_optimized":)" + truth() +
         R"(,"get_password_data":false,"hibernation":null,"host_id":null,"iam_instance_profile":"web","id":")" + id +
         R"(","instance_state":"running","instance_type":"m5.large","ipv6_address_count":0,"key_name":"ops","monitoring":)" +
         truth() + R"(,"placement_group":"","private_dns":"ip-)" + hex(8) +
         R"(.eu-central-1.compute.internal","private_ip":")" + ip +
         R"(","security_groups":["web","base"],"spot_price":0.0315,"subnet_id":"subnet-)" + hex(17) +
         R"(","tags":{"Environment":"prod","Name":"web-)" + std::to_string(i) +
         R"(","Team":"shop"},"user_data_replace_on_change":false,"vpc_security_group_ids":["sg-)" + hex(17) +
         R"(","sg-0a1b2c3d4e5f60718"]})";
}

/// Writes a state of about `bytes`: resources with one instance each, of 30 small attributes. Returns where the
/// attributes of each instance are.
inline std::vector<Slice> write_many_attributes(const std::string& path, std::size_t bytes) {
  std::ofstream out(path);
  out << R"({"version":4,"terraform_version":"1.9.0","serial":1,"lineage":"abc","outputs":{},"resources":[)";
  auto written = static_cast<std::size_t>(out.tellp());
  HexDigits hex;
  std::vector<Slice> slices;
  for (int i = 0; written < bytes; ++i) {
    std::string resource =
        (i == 0 ? "" : ",") + (R"({"mode":"managed","type":"aws_instance","name":"web_)" + std::to_string(i)) +
        R"(","provider":"provider[\"registry.terraform.io/hashicorp/aws\"]","instances":[{"schema_version":1,"attributes":)";
    const std::string attributes = many_attributes(i, hex);
    slices.push_back({written + resource.size(), attributes.size()});
    resource += attributes + R"(,"sensitive_attributes":[],"private":"bnVsbA=="}]})";
    written += resource.size();
    out << resource;
  }
  out << "]}";
  return slices;
}

}  // namespace driftd::test
