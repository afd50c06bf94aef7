// SPDX-License-Identifier: Apache-2.0
#include "ipc/wire.hpp"

#include "base/digest.hpp"
#include "ipc/little_endian.hpp"

namespace driftd::ipc {
namespace {

constexpr std::uint32_t kMagic = 0x31465244;  // "DRF1"

bool known(std::uint64_t type) {
  return (type >= std::uint64_t(FrameType::load) && type <= std::uint64_t(FrameType::part)) ||
         (type >= std::uint64_t(FrameType::result) && type <= std::uint64_t(FrameType::settled));
}

std::size_t longest(FrameType type) {
  switch (type) {
    case FrameType::mark:
    case FrameType::diagnostic:
    case FrameType::log:
    case FrameType::metric:
    case FrameType::permit:
      return kMaxSmall;
    default:
      return kMaxPayload;
  }
}

}  // namespace

std::string render(const Frame& frame) {
  std::string out;
  out.reserve(kHeaderSize + frame.payload.size());
  put_le(out, kMagic, 4);
  put_le(out, std::uint64_t(frame.type), 4);
  put_le(out, frame.payload.size(), 4);
  put_le(out, frame.call, 8);
  put_le(out, crc32c(frame.payload, crc32c(out)), 4);
  out += frame.payload;
  return out;
}

void FrameReader::feed(std::string_view bytes) {
  buffer_.erase(0, at_);  // the rest is less than a frame
  at_ = 0;
  if (buffer_.empty() && buffer_.capacity() > kCallCredit) buffer_.shrink_to_fit();
  buffer_.append(bytes);
}

Result<std::optional<Frame>> FrameReader::next() {
  const std::string_view in = std::string_view(buffer_).substr(at_);
  if (in.size() >= 4 && get_le(in, 4) != kMagic) return fail(Code::corrupt, "a frame does not start with its magic");
  if (in.size() < kHeaderSize) return std::optional<Frame>{};
  const std::uint64_t type = get_le(in.substr(4), 4);
  const std::uint64_t length = get_le(in.substr(8), 4);
  if (!known(type) || length > longest(static_cast<FrameType>(type)))
    return fail(Code::corrupt, "a frame's type or length is impossible");
  if (in.size() < kHeaderSize + length) {
    buffer_.reserve(at_ + kHeaderSize + length);
    return std::optional<Frame>{};
  }
  Frame frame{static_cast<FrameType>(type), get_le(in.substr(12), 8), std::string(in.substr(kHeaderSize, length))};
  const std::uint32_t sum = crc32c(frame.payload, crc32c(in.substr(0, kHeaderSize - 4)));
  if (sum != get_le(in.substr(20), 4)) return fail(Code::corrupt, "a frame's checksum is wrong");
  at_ += kHeaderSize + length;
  return std::optional<Frame>(std::move(frame));
}

std::string_view call_name(FrameType call) {
  switch (call) {
    case FrameType::load:
      return "load";
    case FrameType::open:
      return "open";
    case FrameType::refresh:
      return "refresh";
    case FrameType::read:
      return "read";
    case FrameType::health:
      return "health";
    case FrameType::watch:
      return "watch";
    case FrameType::demote:
      return "diff";
    case FrameType::discover:
      return "discover";
    case FrameType::upgrade:
      return "upgrade";
    case FrameType::apply:
      return "apply";
    case FrameType::deliver:
      return "deliver";
    case FrameType::flush:
      return "flush";
    default:
      return "call";
  }
}

}  // namespace driftd::ipc
