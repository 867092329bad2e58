# SPDX-License-Identifier: Apache-2.0
"""A tiny Llama-like decoder: compiled for WebGPU by TVM, checked against numpy."""
