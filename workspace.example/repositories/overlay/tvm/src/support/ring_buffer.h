// SPDX-License-Identifier: Apache-2.0
/*!
 * \file ring_buffer.h
 * \brief Names the buffer type of an RPC endpoint, which this runtime does not have.
 *
 * rpc_module.cc includes rpc_endpoint.h, whose class declares two such members; rpc_endpoint.cc,
 * the only code that uses them, is not part of the pack.
 */
#ifndef TVM_SUPPORT_RING_BUFFER_H_
#define TVM_SUPPORT_RING_BUFFER_H_

namespace tvm {
namespace support {

class RingBuffer {};

}  // namespace support
}  // namespace tvm

#endif  // TVM_SUPPORT_RING_BUFFER_H_
