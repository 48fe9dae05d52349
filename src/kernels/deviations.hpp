// How much each score of the background varies over the rows that the nodes stand for.
//
// Ranks less the base are below 2^22.1, so a score is below 2^53.1 here. Squares are taken of its multiples of 2^22: below 2^62.2
// each, and added in 128 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "background.hpp"
#include "ranked_nodes.hpp"

namespace mlca::MLCA_LEVEL {

template <class View>
class Deviations {
public:
    Deviations(const View& view, const RankedNodes& ranked, std::int64_t n_rows, Background& background)
        : view_(view), ranked_(ranked), n_rows_(n_rows), background_(background) {}

    // The background's lists must be there.
    void fill_in() {
        const auto n_slots = static_cast<std::size_t>(background_.n_slots());
        squares_.assign(n_slots, 0);
        bases_.resize(n_slots);
        for (std::int64_t slot = 0; slot < background_.n_slots(); ++slot) {
            std::int64_t base = -background_.centres.data()[slot];  // the score where all ranks are the base, or the lowest
            for (std::int64_t p = background_.starts.data()[slot]; p < background_.starts.data()[slot + 1]; ++p) {
                const std::int32_t j = background_.attributes.data()[p];
                base -= static_cast<std::int64_t>(background_.coefficients.data()[p]) * (ranked_.shift(j) + (ranked_.is_dense() ? ranked_.base(j) : 0));
            }
            bases_.data()[slot] = base;
        }
        if (ranked_.is_dense()) {
            add_squares_of_dense();
        } else {
            add_squares_of_sparse();
        }
        for (const Int128 square : squares_) {
            background_.deviations.push_back(std::sqrt(static_cast<double>(square) / static_cast<double>(n_rows_)) * 0x1p22);
        }
    }

private:
    void add_square(std::int64_t slot, std::int64_t score, std::int64_t count) noexcept {
        const std::int64_t coarse = score >> 22;
        squares_.data()[slot] += static_cast<Int128>(coarse * coarse) * count;
    }

    // Many nodes at a time, one attribute after the other.
    void add_squares_of_dense() {
        constexpr std::int64_t TOGETHER_SCORED = 64;
        Array<std::int32_t> columns(static_cast<std::size_t>(view_.n_attributes() * TOGETHER_SCORED), 0);
        std::int64_t scores[TOGETHER_SCORED];
        Array<std::int32_t> scored;  // attributes that some label has
        for (std::int64_t j = 0; j < view_.n_attributes(); ++j) {
            if (background_.list_starts.data()[j] < background_.list_starts.data()[j + 1]) scored.push_back(static_cast<std::int32_t>(j));
        }
        for (std::int64_t first = 0; first < view_.n_nodes(); first += TOGETHER_SCORED) {
            const std::int64_t n = std::min(TOGETHER_SCORED, view_.n_nodes() - first);
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int32_t* row = ranked_.row(first + i);
                for (const std::int32_t j : scored) columns.data()[j * TOGETHER_SCORED + i] = row[j];
            }
            for (std::int64_t slot = 0; slot < background_.n_slots(); ++slot) {
                const std::int64_t start = background_.starts.data()[slot], end = background_.starts.data()[slot + 1];
                if (start == end) continue;
                std::fill_n(scores, TOGETHER_SCORED, bases_.data()[slot]);
                for (std::int64_t p = start; p < end; ++p) {
                    const std::int32_t* __restrict column = columns.data() + background_.attributes.data()[p] * TOGETHER_SCORED;
                    const std::int32_t coefficient = background_.coefficients.data()[p];
                    for (std::int64_t i = 0; i < TOGETHER_SCORED; ++i) scores[i] += static_cast<std::int64_t>(column[i]) * coefficient;
                }
                for (std::int64_t i = 0; i < n; ++i) add_square(slot, scores[i], view_.count(first + i));
            }
        }
    }

    // Node by node; those that have none of a label's attributes share one score.
    void add_squares_of_sparse() {
        const auto n_slots = static_cast<std::size_t>(background_.n_slots());
        Array<std::int64_t> scores(n_slots, 0), rows_with(n_slots, 0), found;
        Array<std::uint8_t> is_found(n_slots, 0);
        found.reserve(n_slots);
        for (std::int64_t k = 0; k < view_.n_nodes(); ++k) {
            const std::int64_t count = view_.count(k);
            ranked_.for_each(k, [&](std::int64_t j, std::int64_t rank) {
                for (std::int64_t p = background_.list_starts.data()[j]; p < background_.list_starts.data()[j + 1]; ++p) {
                    const std::int32_t slot = background_.list_slots.data()[p];
                    scores.data()[slot] += rank * background_.list_coefficients.data()[p];
                    if (is_found.data()[slot]) continue;
                    is_found.data()[slot] = 1;
                    found.push_back(slot);
                }
            });
            for (const std::int64_t slot : found) {
                add_square(slot, bases_.data()[slot] + scores.data()[slot], count);
                rows_with.data()[slot] += count;
                scores.data()[slot] = 0;
                is_found.data()[slot] = 0;
            }
            found.clear();
        }
        for (std::int64_t slot = 0; slot < background_.n_slots(); ++slot) {
            if (background_.starts.data()[slot] == background_.starts.data()[slot + 1]) continue;
            add_square(slot, bases_.data()[slot], n_rows_ - rows_with.data()[slot]);
        }
    }

    const View& view_;
    const RankedNodes& ranked_;
    std::int64_t n_rows_;
    Background& background_;
    Array<std::int64_t> bases_;  // of each slot: the score where all ranks are as if they were 0
    Array<Int128> squares_;
};

}  // namespace mlca::MLCA_LEVEL
