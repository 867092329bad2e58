// SPDX-License-Identifier: Apache-2.0
/*!
 * \file tvm/support/cuda/nvtx.h
 * \brief Profiler ranges of NVIDIA's tools, which a browser does not have.
 */
#ifndef TVM_SUPPORT_CUDA_NVTX_H_
#define TVM_SUPPORT_CUDA_NVTX_H_

#include <string>

namespace tvm {
namespace support {

/*! \brief Names the scope it lives in for a profiler; here it does nothing. */
class NVTXScopedRange {
 public:
  explicit NVTXScopedRange(const std::string&) {}
};

}  // namespace support
}  // namespace tvm

#endif  // TVM_SUPPORT_CUDA_NVTX_H_
