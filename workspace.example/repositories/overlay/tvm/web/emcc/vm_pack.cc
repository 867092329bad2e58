// SPDX-License-Identifier: Apache-2.0
/*!
 * \file vm_pack.cc
 * \brief TVM's virtual machine and tensor cache, as one translation unit.
 *
 * See ffi_pack.cc for the split. Left out are the paged KV cache, the attention backends and the
 * RNN state: the example's decoder passes its cache as plain tensors.
 */
#define TVM_LOG_DEBUG 0
#define TVM_LOG_CUSTOMIZE 1
#define TVM_FFI_USE_LIBBACKTRACE 0
#define TVM_FFI_ALWAYS_LOG_BEFORE_THROW 1

#include "src/runtime/vm/builtin.cc"
#include "src/runtime/vm/bytecode.cc"
#include "src/runtime/vm/executable.cc"
#include "src/runtime/vm/lm_support.cc"
#include "src/runtime/vm/tensor_cache_support.cc"
#include "src/runtime/vm/vm.cc"
