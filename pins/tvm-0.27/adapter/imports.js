// SPDX-License-Identifier: Apache-2.0
// What a model library imports from the page's TVM module. With these named, the link can treat
// every other undefined symbol as an error. Only the names matter: no JavaScript is emitted.
mergeInto(LibraryManager.library, {
  TVMFFIWasmSafeCall: () => {},
  TVMFFIWasmFunctionDeleter: () => {},
});
