// SPDX-License-Identifier: Apache-2.0
/*!
 * \file bytes_io.h
 * \brief Streams over bytes in memory.
 */
#ifndef TVM_SUPPORT_BYTES_IO_H_
#define TVM_SUPPORT_BYTES_IO_H_

#include <tvm/ffi/string.h>
#include <tvm/support/io.h>
#include <tvm/support/serializer.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace tvm {
namespace support {

/*! \brief Reads from bytes that the caller keeps alive. */
class BytesInStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;

  explicit BytesInStream(const ffi::Bytes& bytes) : data_(bytes.data()), size_(bytes.size()) {}
  explicit BytesInStream(const std::string& bytes) : data_(bytes.data()), size_(bytes.size()) {}

  size_t Read(void* ptr, size_t size) final {
    size_t count = std::min(size, size_ - position_);
    if (count != 0) std::memcpy(ptr, data_ + position_, count);
    position_ += count;
    return count;
  }
  size_t Write(const void*, size_t) final {
    TVM_FFI_THROW(InternalError) << "BytesInStream is read-only";
    TVM_FFI_UNREACHABLE();
  }

 private:
  const char* data_;
  size_t size_;
  size_t position_ = 0;
};

/*! \brief Appends to a string that the caller owns. */
class BytesOutStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;

  explicit BytesOutStream(std::string* bytes) : bytes_(bytes) {}

  size_t Read(void*, size_t) final {
    TVM_FFI_THROW(InternalError) << "BytesOutStream is write-only";
    TVM_FFI_UNREACHABLE();
  }
  size_t Write(const void* ptr, size_t size) final {
    bytes_->append(static_cast<const char*>(ptr), size);
    return size;
  }

 private:
  std::string* bytes_;
};

}  // namespace support
}  // namespace tvm

#endif  // TVM_SUPPORT_BYTES_IO_H_
