#include "cpu.hpp"

// Asked by hand: __builtin_cpu_supports needs a run-time library that not every compiler brings (zig's does not).
#if defined(__x86_64__)
#include <cpuid.h>

#include <cstdint>
#include <initializer_list>

namespace mlca::MLCA_LEVEL {
namespace {

struct Registers {
    unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers ask(unsigned leaf) {
    Registers r;
    __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);  // leaves zeros where the processor knows no such leaf
    return r;
}

constexpr bool has_all(std::uint64_t word, std::initializer_list<unsigned> bits) {
    for (const unsigned bit : bits) {
        if (!(word >> bit & 1)) return false;
    }
    return true;
}

// Which registers the operating system saves when it switches threads; only asked where OSXSAVE says that it can be.
std::uint64_t saved_registers() {
    std::uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32 | low;
}

int x86_64_level() {
    const Registers basic = ask(1), more = ask(7), extended = ask(0x80000001);
    // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
    if (!has_all(basic.c, {0, 9, 13, 19, 20, 23}) || !has_all(extended.c, {0})) return 1;
    // FMA, MOVBE, OSXSAVE, AVX, F16C; LZCNT; BMI1, AVX2, BMI2; SSE and AVX registers saved
    if (!has_all(basic.c, {12, 22, 27, 28, 29}) || !has_all(extended.c, {5}) || !has_all(more.b, {3, 5, 8})) return 2;
    const std::uint64_t saved = saved_registers();
    if (!has_all(saved, {1, 2})) return 2;
    // AVX-512 F, DQ, CD, BW, VL; masks and both halves of the large registers saved
    if (!has_all(more.b, {16, 17, 28, 30, 31}) || !has_all(saved, {5, 6, 7})) return 3;
    return 4;
}

}  // namespace

bool processor_has(std::string_view level) {
    static const int highest = x86_64_level();
    if (level == "v2") return highest >= 2;
    if (level == "v3") return highest >= 3;
    if (level == "v4") return highest >= 4;
    return false;
}

}  // namespace mlca::MLCA_LEVEL

#else

namespace mlca::MLCA_LEVEL {

bool processor_has(std::string_view level) { return level == "plain"; }

}  // namespace mlca::MLCA_LEVEL

#endif
