// SPDX-License-Identifier: Apache-2.0
/*!
 * \file tvm/support/io.h
 * \brief Byte stream interface that TVM's runtime sources read and write through.
 *
 * The apache-tvm wheel ships the sources that include this header but not the header itself.
 */
#ifndef TVM_SUPPORT_IO_H_
#define TVM_SUPPORT_IO_H_

#include <tvm/ffi/endian.h>

#include <cstddef>

namespace tvm {
namespace support {

template <typename T>
struct Serializer;

/*! \brief A sequence of bytes, read or written front to back. */
class Stream {
 public:
  virtual ~Stream() = default;

  /*! \return the number of bytes read, less than size at the end of the stream. */
  virtual size_t Read(void* ptr, size_t size) = 0;

  /*! \return the number of bytes written. */
  virtual size_t Write(const void* ptr, size_t size) = 0;

  /*! \brief Write one value in the layout that Serializer<T> defines. */
  template <typename T>
  void Write(const T& value) {
    Serializer<T>::Write(this, value);
  }

  /*! \return false when the stream ends before the value does. */
  template <typename T>
  bool Read(T* value) {
    return Serializer<T>::Read(this, value);
  }

  /*! \brief Write count values without a leading count. */
  template <typename T>
  void WriteArray(const T* values, size_t count) {
    for (size_t i = 0; i < count; ++i) Write(values[i]);
  }

  /*! \brief Read exactly count values; false when the stream ends before. */
  template <typename T>
  bool ReadArray(T* values, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (!Read(values + i)) return false;
    }
    return true;
  }
};

}  // namespace support
}  // namespace tvm

#endif  // TVM_SUPPORT_IO_H_
