// SPDX-License-Identifier: Apache-2.0
/*!
 * \file tvm_ffi.cc
 * \brief libtvm_ffi for the machine that builds, as one translation unit.
 *
 * Compiled from the root of the tvm-ffi package. Together the sources parse their headers once.
 */
#include "src/ffi/backtrace.cc"
#include "src/ffi/container.cc"
#include "src/ffi/custom_allocator.cc"
#include "src/ffi/dtype.cc"
#include "src/ffi/error.cc"
#include "src/ffi/extra/dataclass.cc"
#include "src/ffi/extra/env_c_api.cc"
#include "src/ffi/extra/env_context.cc"
#include "src/ffi/extra/json_parser.cc"
#include "src/ffi/extra/json_writer.cc"
#include "src/ffi/extra/library_module.cc"
#include "src/ffi/extra/library_module_dynamic_lib.cc"
#include "src/ffi/extra/library_module_system_lib.cc"
#include "src/ffi/extra/module.cc"
#include "src/ffi/extra/reflection_extra.cc"
#include "src/ffi/extra/serialization.cc"
#include "src/ffi/extra/structural_equal.cc"
#include "src/ffi/extra/structural_hash.cc"
#include "src/ffi/extra/structural_mutate.cc"
#include "src/ffi/extra/structural_visit.cc"
#include "src/ffi/extra/visit_error_context.cc"
#include "src/ffi/function.cc"
#include "src/ffi/init_once.cc"
#include "src/ffi/object.cc"
#include "src/ffi/tensor.cc"
