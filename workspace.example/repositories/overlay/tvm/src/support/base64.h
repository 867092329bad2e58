// SPDX-License-Identifier: Apache-2.0
/*!
 * \file base64.h
 * \brief Base64 on top of another stream, for tensors embedded in JSON.
 *
 * Both streams hold the whole text in memory: such tensors are constants of a model's metadata,
 * not weights.
 */
#ifndef TVM_SUPPORT_BASE64_H_
#define TVM_SUPPORT_BASE64_H_

#include <tvm/ffi/extra/base64.h>
#include <tvm/support/io.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace tvm {
namespace support {

/*! \brief Decodes the text that the inner stream still holds. */
class Base64InStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;

  explicit Base64InStream(Stream* inner) : inner_(inner) {}

  /*! \brief Read and decode the text; call once, before the first read. */
  void InitPosition() {
    std::string text;
    char chunk[1024];
    while (size_t count = inner_->Read(static_cast<void*>(chunk), sizeof(chunk))) {
      text.append(chunk, count);
    }
    bytes_ = ffi::Base64Decode(ffi::String(text));
  }
  size_t Read(void* ptr, size_t size) final {
    size_t count = std::min(size, bytes_.size() - position_);
    if (count != 0) std::memcpy(ptr, bytes_.data() + position_, count);
    position_ += count;
    return count;
  }
  size_t Write(const void*, size_t) final {
    TVM_FFI_THROW(InternalError) << "Base64InStream is read-only";
    TVM_FFI_UNREACHABLE();
  }

 private:
  Stream* inner_;
  ffi::Bytes bytes_;
  size_t position_ = 0;
};

/*! \brief Collects bytes and writes their text to the inner stream at the end. */
class Base64OutStream : public Stream {
 public:
  using Stream::Read;
  using Stream::Write;

  explicit Base64OutStream(Stream* inner) : inner_(inner) {}

  size_t Read(void*, size_t) final {
    TVM_FFI_THROW(InternalError) << "Base64OutStream is write-only";
    TVM_FFI_UNREACHABLE();
  }
  size_t Write(const void* ptr, size_t size) final {
    bytes_.append(static_cast<const char*>(ptr), size);
    return size;
  }
  /*! \brief Encode and write; call once, after the last write. */
  void Finish() {
    ffi::String text = ffi::Base64Encode(TVMFFIByteArray{bytes_.data(), bytes_.size()});
    inner_->Write(static_cast<const void*>(text.data()), text.size());
  }

 private:
  Stream* inner_;
  std::string bytes_;
};

}  // namespace support
}  // namespace tvm

#endif  // TVM_SUPPORT_BASE64_H_
