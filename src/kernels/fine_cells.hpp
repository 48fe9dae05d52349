// The boundaries of cells in sixteen bits: cells and tables from the codes of fine.hpp, at a third of the cost.
//
// Codes keep order: of two values the larger has no smaller code. So the code of a value between two boundaries lies
// between theirs, or equals one. If it equals none, it tells the value's cell as the value itself would.
#pragma once

#include <bit>
#include <cstdint>

#include "cells.hpp"
#include "fine.hpp"
#include "level.hpp"
#include "memory.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mlca::MLCA_LEVEL {

class FineCells {
public:
    explicit FineCells(std::int64_t n_attributes) : boundaries_(static_cast<std::size_t>(n_attributes * BOUNDARY_ROOM), std::int16_t{0}) {}

    void build(const Cells& cells, const FineWidths& widths) noexcept {
        for (std::int64_t i = 0; i < cells.n_attributes(); ++i) {
            for (std::int64_t k = 0; k < BOUNDARY_ROOM; ++k) {
                boundaries_[static_cast<std::size_t>(i * BOUNDARY_ROOM + k)] = widths.encode(i, cells.boundaries(i)[k]);
            }
        }
    }

    const std::int16_t* boundaries(std::int64_t attribute) const noexcept { return boundaries_.data() + attribute * BOUNDARY_ROOM; }

    // Write the cells of some values whose codes are known.
    void assign(const double* values, const std::int16_t* codes, const Cells& cells, std::uint8_t* assigned) const noexcept {
#if defined(__AVX2__)
        for (std::int64_t i = 0; i < cells.n_attributes(); ++i) {
            const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(boundaries(i))), code = _mm256_set1_epi16(codes[i]);
            const int equal = _mm256_movemask_epi8(_mm256_cmpeq_epi16(all, code));
            assigned[i] = equal != 0 ? cells.cell(i, values[i]) : first_above(_mm256_cmpgt_epi16(all, code));
        }
#else
        (void)codes;
        cells.assign(values, assigned);
#endif
    }

#if defined(__AVX2__)
    // The number of the first boundary that is above; they ascend, and the last is never asked for.
    static std::uint8_t first_above(__m256i above) noexcept {
        const auto bytes = static_cast<std::uint32_t>(_mm256_movemask_epi8(above)) | (std::uint32_t{1} << (2 * N_BOUNDARIES));
        return static_cast<std::uint8_t>(std::countr_zero(bytes) / 2);
    }
#endif

private:
    Array<std::int16_t> boundaries_;
};

}  // namespace mlca::MLCA_LEVEL
