#pragma once

// One source, compiled once per processor level; CMake says for which:
//
//   MLCA_LEVEL        v2, v3, v4 (x86-64-v2 ... v4) or plain
//   MLCA_MODULE       the Python module, _kernels_v2 ...
//   MLCA_ARITHMETIC   the floating-point rules of this file: exact, rough or strict (see CMakeLists.txt)
//
// All code lives in namespace mlca::MLCA_LEVEL, so that modules of two levels can share a process. Inline functions and
// templates that files of different arithmetic include live in mlca::MLCA_LEVEL::MLCA_ARITHMETIC: otherwise the linker
// would keep one copy of each, compiled by the rules of either.

#if !defined(MLCA_LEVEL) || !defined(MLCA_ARITHMETIC)
#error "CMakeLists.txt defines MLCA_LEVEL and MLCA_ARITHMETIC"
#endif

#define MLCA_QUOTE_AS_IS(word) #word
#define MLCA_QUOTE(word) MLCA_QUOTE_AS_IS(word)
