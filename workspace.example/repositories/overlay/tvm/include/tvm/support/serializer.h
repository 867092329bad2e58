// SPDX-License-Identifier: Apache-2.0
/*!
 * \file tvm/support/serializer.h
 * \brief Layout of every value type in TVM's executables and device modules.
 *
 * The compiler inside the wheel writes these bytes and this runtime reads them, so the layout is
 * given: numbers little-endian as they lie in memory, every count a uint64, a pair of a map as key
 * then value.
 */
#ifndef TVM_SUPPORT_SERIALIZER_H_
#define TVM_SUPPORT_SERIALIZER_H_

#include <dlpack/dlpack.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/string.h>
#include <tvm/support/io.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tvm {
namespace support {

static_assert(TVM_FFI_IO_NO_ENDIAN_SWAP, "this overlay serves little-endian targets only");

/*! \brief Values that are written as they lie in memory. */
template <typename T>
struct PlainSerializer {
  static constexpr bool enabled = true;

  static void Write(Stream* strm, const T& value) {
    strm->Write(static_cast<const void*>(&value), sizeof(T));
  }
  static bool Read(Stream* strm, T* value) {
    return strm->Read(static_cast<void*>(value), sizeof(T)) == sizeof(T);
  }
};

/*! \brief Numbers and enumerations; every other type has a specialization. */
template <typename T>
struct Serializer : PlainSerializer<T> {
  static_assert(std::is_arithmetic<T>::value || std::is_enum<T>::value, "no layout for this type");
};

/*! \brief code and bits as uint8, lanes as uint16. */
template <>
struct Serializer<DLDataType> : PlainSerializer<DLDataType> {
  static_assert(sizeof(DLDataType) == 4, "fields must not be padded");
};

/*! \brief device_type and device_id as int32. */
template <>
struct Serializer<DLDevice> : PlainSerializer<DLDevice> {
  static_assert(sizeof(DLDevice) == 8, "fields must not be padded");
};

template <>
struct Serializer<std::string> {
  static constexpr bool enabled = true;

  static void Write(Stream* strm, const std::string& value) {
    strm->Write(static_cast<uint64_t>(value.size()));
    strm->Write(static_cast<const void*>(value.data()), value.size());
  }
  static bool Read(Stream* strm, std::string* value) {
    uint64_t size;
    if (!strm->Read(&size)) return false;
    value->resize(static_cast<size_t>(size));
    return strm->Read(static_cast<void*>(&(*value)[0]), value->size()) == value->size();
  }
};

template <>
struct Serializer<ffi::String> {
  static constexpr bool enabled = true;

  static void Write(Stream* strm, const ffi::String& value) {
    strm->Write(static_cast<std::string>(value));
  }
  static bool Read(Stream* strm, ffi::String* value) {
    std::string text;
    if (!strm->Read(&text)) return false;
    *value = ffi::String(std::move(text));
    return true;
  }
};

/*! \brief A count, then the elements: std::vector and ffi::Array. */
template <typename Container, typename T>
struct SequenceSerializer {
  static constexpr bool enabled = true;

  static void Write(Stream* strm, const Container& values) {
    strm->Write(static_cast<uint64_t>(values.size()));
    for (const T& value : values) strm->Write(value);
  }
  static bool Read(Stream* strm, Container* values) {
    uint64_t count;
    if (!strm->Read(&count)) return false;
    *values = Container();
    values->reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count; ++i) {
      T value{};
      if (!strm->Read(&value)) return false;
      values->push_back(std::move(value));
    }
    return true;
  }
};

template <typename T>
struct Serializer<std::vector<T>> : SequenceSerializer<std::vector<T>, T> {};

template <typename T>
struct Serializer<ffi::Array<T>> : SequenceSerializer<ffi::Array<T>, T> {};

/*! \brief A count, then the entries; maps are only ever read here. */
template <typename K, typename V>
struct Serializer<std::unordered_map<K, V>> {
  static constexpr bool enabled = true;

  static bool Read(Stream* strm, std::unordered_map<K, V>* entries) {
    uint64_t count;
    if (!strm->Read(&count)) return false;
    entries->clear();
    for (uint64_t i = 0; i < count; ++i) {
      K key;
      V value;
      if (!strm->Read(&key) || !strm->Read(&value)) return false;
      entries->emplace(std::move(key), std::move(value));
    }
    return true;
  }
};

/*! \brief As above. V is a reference type, so it starts as null. */
template <typename K, typename V>
struct Serializer<ffi::Map<K, V>> {
  static constexpr bool enabled = true;

  static bool Read(Stream* strm, ffi::Map<K, V>* entries) {
    uint64_t count;
    if (!strm->Read(&count)) return false;
    *entries = ffi::Map<K, V>();
    for (uint64_t i = 0; i < count; ++i) {
      K key;
      V value{ffi::UnsafeInit()};
      if (!strm->Read(&key) || !strm->Read(&value)) return false;
      entries->Set(std::move(key), std::move(value));
    }
    return true;
  }
};

}  // namespace support
}  // namespace tvm

#endif  // TVM_SUPPORT_SERIALIZER_H_
