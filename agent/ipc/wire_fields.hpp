// SPDX-License-Identifier: Apache-2.0
// The templates of wire.hpp, which write and read each kind of member.
#pragma once

#include "ipc/wire.hpp"

namespace driftd::ipc {
namespace detail {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class K, class V>
struct IsMap<std::map<K, V>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

}  // namespace detail

template <class T>
void Encoder::put(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    text(value);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    raw(static_cast<std::uint64_t>(value), static_cast<int>(sizeof(T)));
  } else if constexpr (detail::IsVector<T>::value) {
    raw(value.size(), 4);
    for (const auto& item : value) put(item);
  } else if constexpr (detail::IsMap<T>::value) {
    raw(value.size(), 4);
    for (const auto& [key, item] : value) (*this)(key, item);
  } else if constexpr (detail::IsOptional<T>::value) {
    put(value.has_value());
    if (value) put(*value);
  } else {
    fields(*this, const_cast<T&>(value));
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
    const std::uint64_t number = raw(static_cast<int>(sizeof(T)));
    ok_ = ok_ && number <= std::uint64_t(last_of(T{}));
    if (ok_) value = static_cast<T>(number);
  } else if constexpr (std::is_integral_v<T>) {
    value = static_cast<T>(raw(static_cast<int>(sizeof(T))));
  } else if constexpr (detail::IsVector<T>::value) {
    const std::size_t n = count();
    for (std::size_t i = 0; i < n && ok_; ++i) get(value.emplace_back());
  } else if constexpr (detail::IsMap<T>::value) {
    const std::size_t n = count();
    for (std::size_t i = 0; i < n && ok_; ++i) {
      std::pair<typename T::key_type, typename T::mapped_type> item;
      (*this)(item.first, item.second);
      value.insert(std::move(item));
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
