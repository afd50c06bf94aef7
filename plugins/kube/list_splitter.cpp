// SPDX-License-Identifier: Apache-2.0
#include "kube/list_splitter.hpp"

#include "driftd/sdk/types.hpp"

namespace driftd::kube {
namespace {

constexpr std::size_t kMaxRest = 1u << 20;

[[noreturn]] void too_large(const char* what, std::size_t max_bytes) {
  throw sdk::Failure(DRIFTD_BUDGET,
                     std::string(what) + " of the API server is larger than " + std::to_string(max_bytes) + " bytes");
}

}  // namespace

void ItemSplitter::feed(std::string_view piece) {
  for (const char c : piece) consume(c);
}

void ItemSplitter::consume(char c) {
  const bool inside = items_ && depth_ >= 3;  // of an element
  std::string& to = inside ? current_ : rest_;
  if (text_) {
    to += c;
    if (collects_key_ && c != '"') key_ += c;
    if (!escaped_ && c == '"') text_ = collects_key_ = false;
    escaped_ = !escaped_ && c == '\\';
  } else {
    consume_outside(c);
  }
  if (current_.size() > max_bytes_) too_large("an object", max_bytes_);
  if (rest_.size() > kMaxRest) too_large("a list without its items", kMaxRest);
}

void ItemSplitter::consume_outside(char c) {
  const bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
  if (opens && depth_ == 1) items_ = c == '[' && key_ == "items";
  if (opens) ++depth_;
  const bool inside = items_ && depth_ >= 3;
  if (inside) {
    current_ += c;
  } else if (!(items_ && depth_ == 2 && c == ',')) {
    rest_ += c;
  }
  if (closes) --depth_;
  if (c == '"') {
    text_ = true;
    collects_key_ = depth_ == 1;
    if (collects_key_) key_.clear();
  }
  if (closes && inside && depth_ == 2) {
    item_(current_);
    current_.clear();
  }
  if (closes && depth_ == 1) items_ = false;
}

const std::string& ItemSplitter::rest() const {
  if (depth_ != 0 || rest_.empty()) throw sdk::Failure(DRIFTD_CORRUPT, "a list of the API server ends in its middle");
  return rest_;
}

void LineSplitter::feed(std::string_view piece) {
  for (auto end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
    if (held_.empty()) {
      line_(piece.substr(0, end));
    } else {
      held_.append(piece.substr(0, end));
      const std::string whole = std::move(held_);
      held_.clear();
      line_(whole);
    }
    piece.remove_prefix(end + 1);
  }
  held_.append(piece);
  if (held_.size() > max_bytes_) too_large("an event", max_bytes_);
}

}  // namespace driftd::kube
