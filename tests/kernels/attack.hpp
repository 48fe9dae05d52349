// Shared by the adversarial tests: a check that reports what was being tested, and a reproducible random number
// generator.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

using std::int64_t;

inline std::string doing;

#define CHECK(truth)                                                                    \
    do {                                                                                \
        if (!(truth)) {                                                                 \
            std::printf("line %d: %s fails: %s\n", __LINE__, #truth, doing.c_str());     \
            std::exit(1);                                                               \
        }                                                                               \
    } while (false)

struct Random {
    std::uint64_t state;

    std::uint64_t bits() {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) ^ (state >> 13);
    }
    double uniform() { return static_cast<double>(bits() & 0xffffffffu) * 0x1p-32; }
    double normal() {
        double sum = -6.0;
        for (int k = 0; k < 12; ++k) sum += uniform();
        return sum;
    }
    int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<std::uint64_t>(n)); }
};
