// SPDX-License-Identifier: Apache-2.0
/*!
 * \file utils.h
 * \brief Empty: tensor_cache_support.cc includes this header but uses nothing from it.
 */
#ifndef TVM_SUPPORT_UTILS_H_
#define TVM_SUPPORT_UTILS_H_
#endif  // TVM_SUPPORT_UTILS_H_
