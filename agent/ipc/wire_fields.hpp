// SPDX-License-Identifier: Apache-2.0
// The payload of a frame: how the fields of a message are written and read. Knows no frame and no message; the structs
// of messages.hpp list their members in `fields`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"

namespace driftd::ipc {
namespace detail {

template <class T>
struct IsVector : std::false_type {};  // a list
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};  // pairs of key and value
template <class K, class V>
struct IsMap<std::map<K, V>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};  // a flag, then the value if it is set
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

}  // namespace detail

inline constexpr std::size_t kAnyCount = 0xffff'ffff;  ///< elements of a list: only its bytes limit them

/// Writes fields in order: integers little endian, texts and lists after a 32-bit count, structs through
/// `fields(archive, value)`. Cannot fail. One for each payload; one thread.
class Encoder {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  std::string take() { return std::move(out_); }  ///< the payload; the last thing that is asked of an encoder

 private:
  template <class T>
  void put(const T& value);                  ///< one value of any type below
  void raw(std::uint64_t value, int bytes);  ///< the low `bytes` bytes
  void text(std::string_view value);         ///< size and bytes
  std::string out_;
};

/// Reads what Encoder wrote, never past the end. After a failure the remaining values keep their old contents. It fails
/// if a list has more than `max_items` elements or a number is not in its enum. Borrows the payload.
class Decoder {
 public:
  explicit Decoder(std::string_view in, std::size_t max_items = kAnyCount) : in_(in), max_items_(max_items) {}
  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  /// Returns true if everything was read without a failure and nothing is left over.
  bool whole() const { return ok_ && in_.empty(); }
  bool ok() const { return ok_; }                  ///< nothing failed so far
  std::size_t left() const { return in_.size(); }  ///< bytes not yet read

 private:
  template <class T>
  void get(T& value);            ///< one value of any type below
  std::uint64_t raw(int bytes);  ///< 0 after a failure, here and below
  std::string text();            ///< size and bytes
  std::size_t count();           ///< of the elements that follow; fails if the rest is too short for that many
  std::string_view in_;          ///< what is left
  std::size_t max_items_;
  bool ok_ = true;
};

/// Returns the payload of a message.
template <class T>
std::string encode(const T& value) {
  Encoder encoder;
  encoder(value);
  return encoder.take();
}
/// Returns the message of a payload; `corrupt` if it fails or if bytes are left over.
template <class T>
Result<T> decode(std::string_view payload, std::size_t max_items = kAnyCount) {
  Decoder decoder(payload, max_items);
  T value{};
  decoder(value);
  if (!decoder.whole()) return fail(Code::corrupt, "a frame's payload cannot be decoded");
  return value;
}

template <class T>
void Encoder::put(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    text(value);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    raw(static_cast<std::uint64_t>(value), static_cast<int>(sizeof(T)));  // also bool: one byte
  } else if constexpr (detail::IsVector<T>::value) {
    raw(value.size(), 4);
    for (const auto& item : value) put(item);
  } else if constexpr (detail::IsMap<T>::value) {
    raw(value.size(), 4);
    for (const auto& [key, item] : value) (*this)(key, item);
  } else if constexpr (detail::IsOptional<T>::value) {
    put(value.has_value());  // one byte
    if (value) put(*value);
  } else {
    fields(*this, const_cast<T&>(value));  // an Encoder only reads it
  }
}

template <class T>
void Decoder::get(T& value) {
  if (!ok_) return;
  if constexpr (std::is_same_v<T, std::string>) {
    value = text();
  } else if constexpr (std::is_same_v<T, bool>) {
    value = raw(1) != 0;
  } else if constexpr (std::is_enum_v<T>) {
    const std::uint64_t number = raw(static_cast<int>(sizeof(T)));  // from outside: it may be no enumerator
    ok_ = ok_ && number <= std::uint64_t(last_of(T{}));
    if (ok_) value = static_cast<T>(number);
  } else if constexpr (std::is_integral_v<T>) {
    value = static_cast<T>(raw(static_cast<int>(sizeof(T))));
  } else if constexpr (detail::IsVector<T>::value) {
    const std::size_t n = count();
    for (std::size_t i = 0; i < n && ok_; ++i) get(value.emplace_back());  // not reserved: `n` is only claimed
  } else if constexpr (detail::IsMap<T>::value) {
    const std::size_t n = count();
    for (std::size_t i = 0; i < n && ok_; ++i) {
      std::pair<typename T::key_type, typename T::mapped_type> item;
      (*this)(item.first, item.second);
      value.insert(std::move(item));  // of a key twice the first one stays
    }
  } else if constexpr (detail::IsOptional<T>::value) {
    bool there = false;
    get(there);
    if (there) get(value.emplace());
  } else {
    fields(*this, value);
  }
}

}  // namespace driftd::ipc
