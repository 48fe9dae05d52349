#pragma once

// The kernels are compiled once per processor level. CMake defines:
//
//   MLCA_LEVEL        v2, v3, v4 (x86-64-v2 ... v4) or plain
//   MLCA_MODULE       the Python module, _kernels_v2 ...
//   MLCA_ARITHMETIC   the floating-point rules of a source file: exact, rough or strict (see CMakeLists.txt)
//
// All code is in namespace mlca::MLCA_LEVEL, so that modules of two levels can be loaded in one process. Inline
// functions and templates included by files with different floating-point rules are in
// mlca::MLCA_LEVEL::MLCA_ARITHMETIC: otherwise the linker would keep one copy of each, and the rules of that copy would
// apply to all callers.

#if !defined(MLCA_LEVEL) || !defined(MLCA_ARITHMETIC)
#error "MLCA_LEVEL and MLCA_ARITHMETIC are not defined; build with CMakeLists.txt, which defines them"
#endif

#define MLCA_QUOTE_AS_IS(word) #word
#define MLCA_QUOTE(word) MLCA_QUOTE_AS_IS(word)
