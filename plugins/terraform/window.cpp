// SPDX-License-Identifier: Apache-2.0
#include "terraform/window.hpp"

#include <openssl/crypto.h>
#include <simdjson.h>
#include <algorithm>
#include <cstring>

#include "common/utf8_text.hpp"
#include "terraform/document.hpp"
#include "terraform/scanner.hpp"

namespace driftd::terraform {
namespace {

constexpr std::size_t kWindow = 256 << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Returns the number of bytes at the end of the text that may be the beginning of a character.
std::size_t torn_at_end(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t size = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return size > back ? back : 0;
  }
  return 0;
}

}  // namespace

Window::Window(const Spool& state) : reader_(state), buffer_(kWindow + kPadding, '\0') { more(); }

Window::Window(std::string_view text) : buffer_(text.size() + kPadding, '\0'), read_(text.size()), ended_(true) {
  std::copy(text.begin(), text.end(), buffer_.begin());
  check_utf8(0);
  std::memset(buffer_.data() + read_, 0, kPadding);
  if (text.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
}

Window::~Window() { OPENSSL_cleanse(buffer_.data(), buffer_.size()); }

void Window::drop(std::size_t bytes) {
  const char* from = buffer_.data();
  const char* to = from + bytes;
  for (;;) {
    const auto* line_end = static_cast<const char*>(std::memchr(from, '\n', static_cast<std::size_t>(to - from)));
    if (line_end == nullptr) break;
    ++line_;
    column_ = 0;
    from = line_end + 1;
  }
  column_ += static_cast<std::uint64_t>(to - from);
  std::memmove(buffer_.data(), to, read_ - bytes);
  base_ += bytes;
  at_ -= bytes;
  end_ -= bytes;
  read_ -= bytes;
}

void Window::fill() {
  const std::size_t room = buffer_.size() - kPadding - read_;
  const std::size_t got = reader_->read(buffer_.data() + read_, room);
  ended_ = got < room;
  read_ += got;
  check_utf8(end_);
  std::memset(buffer_.data() + read_, 0, kPadding);
}

void Window::check_utf8(std::size_t from) {
  const std::size_t torn = ended_ ? 0 : torn_at_end(std::string_view(buffer_).substr(from, read_ - from));
  end_ = read_ - torn;
  if (!simdjson::validate_utf8(buffer_.data() + from, end_ - from)) {
    end_ = from;
    while (const std::size_t size = common::utf8_character(std::string_view(buffer_).substr(end_, read_ - end_)))
      end_ += size;
    bad_ = true;
    ended_ = false;
    read_ = end_;  // nothing behind it is looked at
  }
}

void Window::more() {
  if (bad_) fail(end(), "a byte that is not UTF-8");
  if (ended_) return;
  const bool first = base_ == 0 && read_ == 0;
  drop(static_cast<std::size_t>((kept_ ? *kept_ : offset()) - base_));
  if (read_ > (buffer_.size() - kPadding) / 2) {
    std::string larger(2 * buffer_.size(), '\0');
    std::memcpy(larger.data(), buffer_.data(), read_);
    OPENSSL_cleanse(buffer_.data(), buffer_.size());
    buffer_ = std::move(larger);
  }
  fill();
  if (first && std::string_view(buffer_).substr(0, end_).starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
}

void Window::fail(const char* where, const std::string& what) const {
  std::uint64_t line = line_, column = column_;
  for (const char* at = buffer_.data(); at < where; ++at) {
    column = *at == '\n' ? 0 : column + 1;
    line += *at == '\n' ? 1 : 0;
  }
  corrupt("the state file is not valid JSON: line " + std::to_string(line) + ", column " + std::to_string(column + 1) +
          ": " + what);
}

}  // namespace driftd::terraform
