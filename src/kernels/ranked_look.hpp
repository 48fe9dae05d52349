// A closer look at the learned similarity: dense nodes by their ranks again, sixteen bits an attribute.
//
// Ranks are scaled so that z = difference * r, whose 2^-z^2 is the kernel, is a difference of two codes in units of 2^-13: no
// factor is left to multiply by, as r is the same in all attributes. The power is that of fine.hpp, the attributes'
// shares of the weight are whole numbers, and 16 attributes are summed at once: three times as fast as float32.
//
// Why the sum less its slack is a lower bound of D = sum of share * (1 - 2^-z^2). Codes are cut off at 2^14, which brings no
// two ranks further apart, and otherwise wrong by 1/2 and three roundings of float32 (below 2^-8 here): z is too large by at
// most 1.01 units, which adds at most 0.72 * 1.01 * 2^-13 < 9e-5 to a term. The power is too small by at most POWER_ERROR. Shares
// that were rounded down may miss what is lost in all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "codes.hpp"
#include "fine.hpp"
#include "learned.hpp"
#include "memory.hpp"

namespace mlca::MLCA_LEVEL {

class RankedLook {
public:
    // No nodes yet.
    RankedLook(const Learned& learned, std::int64_t n_expected)
        : d_(learned.n_attributes()),
          width_(rounded_up(d_, FINE_LANES)),
          middle_(static_cast<std::int32_t>(learned.ranks.one() / 2)),
          factor_(static_cast<float>(learned.r * 0x1p13)),
          codes_(width_, n_expected),
          shares_(static_cast<std::size_t>(width_), std::int16_t{0}) {
        share_out(learned);
    }

    // Make room for n nodes in all; a failure leaves everything as it was.
    void reserve(std::int64_t n) { codes_.reserve(n); }
    // Write a node, given by its ranks from the lowest.
    void enter(std::int64_t node, const std::int32_t* ranks) noexcept { encode(ranks, codes_[node]); }
    // The code of a row, of so many numbers.
    std::int64_t width() const noexcept { return width_; }
    void encode(const std::int32_t* __restrict ranks, std::int16_t* __restrict code) const noexcept {
        const float factor = factor_;
        const std::int32_t middle = middle_;
        for (std::int64_t j = 0; j < d_; ++j) {
            float place = static_cast<float>(ranks[j] - middle) * factor;
            place = place > -FARTHEST ? place : -FARTHEST;
            place = place < FARTHEST ? place : FARTHEST;
            code[j] = static_cast<std::int16_t>(static_cast<std::int32_t>(place + (FARTHEST + 1.5f)) - static_cast<std::int32_t>(FARTHEST + 1.0f));
        }
        std::fill(code + d_, code + width_, std::int16_t{0});
    }

    // A lower bound of a row's D with a node.
    double lower(const std::int16_t* code, std::int64_t node) const noexcept { return most_ - unit_ * static_cast<double>(alike(code, codes_[node])); }
    // By how much it stays below D as a rule.
    double looseness() const noexcept { return looseness_; }
    const std::int16_t* code(std::int64_t node) const noexcept { return codes_[node]; }

private:
    static constexpr float FARTHEST = 16383.0f;
    static constexpr double CODE_ERROR = 9e-5;
    // Sums of products are of 32 bits, eight of them: in each, shares may add up to this.
    static constexpr double MOST_SHARES = 65535.0;
    // With so many attributes the rounding of shares alone might exceed it.
    static constexpr std::int64_t MOST_LOOKED_AT = std::int64_t{1} << 19;

    // Turn weights into whole numbers, as large as the sums allow.
    void share_out(const Learned& learned) noexcept {
        if (width_ > MOST_LOOKED_AT) return;  // all bounds are 0 then
        const auto share = [&](std::int64_t j) { return static_cast<double>(learned.weights.data()[j]) / static_cast<double>(learned.total); };
        double sums[FINE_LANES / 2] = {}, largest = 0.0;
        for (std::int64_t j = 0; j < d_; ++j) {
            sums[j % FINE_LANES / 2] += share(j);
            largest = std::max(largest, share(j));
        }
        const double in_a_sum = *std::max_element(sums, sums + FINE_LANES / 2);
        const double step = std::max(in_a_sum / (MOST_SHARES - static_cast<double>(width_ / FINE_LANES)), largest / 32766.0);
        double lost = 0.0, won = 0.0;
        for (std::int64_t j = 0; j < d_; ++j) {
            const auto rounded_share = static_cast<std::int32_t>(share(j) / step + 0.5);
            shares_.data()[j] = static_cast<std::int16_t>(rounded_share);
            const double more = static_cast<double>(rounded_share) * step - share(j);
            (more > 0.0 ? won : lost) += std::fabs(more);
        }
        const double slack = POWER_ERROR + CODE_ERROR + lost + 1e-8;  // the last for arithmetic in float64
        most_ = 1.0 - slack;
        unit_ = step * 0x1p-15;
        // Powers of small z are too large by 5e-5 on average, so bounds are a little looser than the slack. Without the eighth the
        // guess of screening.hpp was too small in 43 of 100 rows of Yeast (51 nearest), and four tenths more nodes were looked at.
        looseness_ = 1.125 * slack + won;
    }

#if defined(__AVX2__)
    [[gnu::noinline]] std::int64_t alike(const std::int16_t* x, const std::int16_t* y) const noexcept {
        const auto load = [](const std::int16_t* some) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(some)); };
        const std::int16_t* shares = shares_.data();
        __m256i totals = _mm256_setzero_si256();
        std::int64_t i = 0;
#if defined(__AVX512BW__)
        const auto load_32 = [](const std::int16_t* some) { return _mm512_loadu_si512(some); };
        __m512i wide = _mm512_setzero_si512();
        for (; i + 2 * FINE_LANES <= width_; i += 2 * FINE_LANES) {
            const __m512i powers = fine_powers<Words32>(_mm512_abs_epi16(_mm512_sub_epi16(load_32(x + i), load_32(y + i))));
            wide = _mm512_add_epi32(wide, _mm512_madd_epi16(powers, load_32(shares + i)));
        }
        totals = half_as_many(wide);
#endif
        for (; i < width_; i += FINE_LANES) {
            const __m256i powers = fine_powers<Words16>(_mm256_abs_epi16(_mm256_sub_epi16(load(x + i), load(y + i))));
            totals = _mm256_add_epi32(totals, _mm256_madd_epi16(powers, load(shares + i)));
        }
        return sum_of_halves(totals);
    }
#else
    [[gnu::noinline]] std::int64_t alike(const std::int16_t* __restrict x, const std::int16_t* __restrict y) const noexcept {
        const std::int16_t* __restrict shares = shares_.data();
        std::int64_t total = 0;
        for (std::int64_t i = 0; i < width_; ++i) total += shares[i] * fine_power(static_cast<std::int16_t>(std::abs(x[i] - y[i])));
        return total;
    }
#endif

    std::int64_t d_, width_;
    std::int32_t middle_;
    float factor_;
    Rows<std::int16_t> codes_;
    Array<std::int16_t> shares_;
    double most_ = 0.0, unit_ = 0.0, looseness_ = 0.0;
};

}  // namespace mlca::MLCA_LEVEL
