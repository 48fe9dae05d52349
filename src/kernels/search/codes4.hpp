// Four-bit codes: each value is replaced by one of sixteen cells of its feature.
//
// The range of a feature is cut at 15 boundaries b_0 <= ... <= b_14. The cell of a value is the number of boundaries
// that are not above it, so cell k holds b_{k-1} <= y < b_k and the outer cells are unbounded: every value has a cell.
// Bounds (search/lookup_tables.hpp) are computed for whole cells and hold for any boundaries; the boundaries only
// determine how tight the bounds are.
//
// Boundaries are computed from a sample of the nodes: each gap between neighbouring sample values is weighted by its
// width to the power 3/8, and every cell gets the same total weight. This is a compromise between quantiles (all gaps
// weighted equally, with wide cells where nodes are few) and an even division (gaps weighted by width). Fewer nodes
// pass the bounds than with either: 4.0 % on Scene (quantiles 4.5 %, even division 8.1 %), 5.7 % on Yeast (6.6 %, 7.0
// %), 0.7 % on Mediamill.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/level.hpp"
#include "base/memory.hpp"
#include "base/team.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t N_BOUNDARIES = 15;
// Number of boundary slots per feature; the last slot is unused.
inline constexpr std::int64_t BOUNDARY_ROOM = 16;

class Cells {
public:
    explicit Cells(std::int64_t n_features)
        : n_features_(n_features), boundaries_(n_features * BOUNDARY_ROOM, 0.0) {}

    std::int64_t n_features() const noexcept { return n_features_; }
    const double* boundaries(std::int64_t feature) const noexcept { return boundaries_.data() + feature * BOUNDARY_ROOM; }

    bool built() const noexcept { return built_from_ > 0; }
    // Whether the boundaries should be recomputed, which invalidates all codes: there are at least four times as many
    // nodes as when they were last computed. (With twice as many instead, learning Yeast took a tenth longer.)
    bool due(std::int64_t n_nodes) const noexcept { return n_nodes >= 1 && n_nodes >= 4 * built_from_; }

    // Recompute the boundaries; weights(node) returns the weights of a node.
    template <class Weights>
    void build(std::int64_t n_nodes, const Weights& weights, ParallelFor parallel_for = ON_ONE_THREAD) {
        const std::int64_t n = std::min(n_nodes, SAMPLE);
        Array<double> sample(n * n_features_);
        parallel_for(n_features_, FEATURES_TOGETHER, [&](std::int64_t low, std::int64_t high) {
            for (std::int64_t k = 0; k < n; ++k) {
                const double* row = weights(k * n_nodes / n);
                for (std::int64_t i = low; i < high; ++i) sample[i * n + k] = row[i];
            }
            for (std::int64_t i = low; i < high; ++i) {
                double* values = sample.data() + i * n;
                std::sort(values, values + n);
                divide(values, n, boundaries_.data() + i * BOUNDARY_ROOM);
            }
        });
        built_from_ = n_nodes;
    }

    std::uint8_t cell(std::int64_t feature, double value) const noexcept {
        const double* of_feature = boundaries(feature);
        std::int64_t count = 0;
        for (std::int64_t k = 0; k < N_BOUNDARIES; ++k) count += of_feature[k] <= value;
        return static_cast<std::uint8_t>(count);
    }

    void assign(const double* values, std::uint8_t* cells) const noexcept {
        for (std::int64_t i = 0; i < n_features_; ++i) cells[i] = cell(i, values[i]);
    }

private:
    // Boundaries come from at most SAMPLE nodes; a larger sample does not make bounds tighter.
    static constexpr std::int64_t SAMPLE = 128, FEATURES_TOGETHER = 16;

    static void divide(const double* values, std::int64_t n, double* boundaries) noexcept {
        double total = 0.0;
        for (std::int64_t k = 1; k < n; ++k) total += weight(values, k);
        double before = 0.0;
        std::int64_t k = 0;  // the boundary lies in the gap before value k, or at value 0
        double within = 0.0;
        for (std::int64_t j = 0; j < N_BOUNDARIES; ++j) {
            const double wanted = total * static_cast<double>(j + 1) / static_cast<double>(N_BOUNDARIES + 1);
            while (k + 1 < n && before + within < wanted) {
                before += within;
                within = weight(values, ++k);
            }
            const double share = within > 0.0 ? std::clamp((wanted - before) / within, 0.0, 1.0) : 1.0;
            const double low = values[std::max<std::int64_t>(k - 1, 0)];
            const double boundary = low * (1.0 - share) + values[k] * share;
            boundaries[j] = j > 0 ? std::max(boundary, boundaries[j - 1]) : boundary;
        }
        boundaries[N_BOUNDARIES] = boundaries[N_BOUNDARIES - 1];
    }

    // Half the width of the gap before value k, to the power 3/8. Values are halved so that their difference cannot
    // overflow.
    static double weight(const double* values, std::int64_t k) noexcept {
        const double root = std::sqrt(std::sqrt(0.5 * values[k] - 0.5 * values[k - 1]));
        return root * std::sqrt(root);
    }

    std::int64_t n_features_;
    std::int64_t built_from_ = 0;
    Array<double> boundaries_;
};

// The four-bit codes of the nodes, in a layout for byte shuffles.
//
// Nodes are stored in blocks of 64. A feature takes 32 consecutive bytes of a block: byte j holds the cell of node j in
// its low four bits and the cell of node j + 32 in its high four bits. So one load reads a feature of 64 nodes, and
// features can be read in any order, as groups of features require. Blocks never move (see Rows), so threads may read
// nodes while another node is entered. The codes take a sixteenth of the memory of the weights.

inline constexpr std::int64_t BLOCK = 64;
inline constexpr std::int64_t BLOCK_BYTES = BLOCK / 2;
// The number of features is padded to a multiple of FOURS.
inline constexpr std::int64_t FOURS = 4;

inline constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

class Codes4 {
public:
    explicit Codes4(std::int64_t n_features, std::int64_t n_expected = UNKNOWN_NUMBER)
        : n_features_(n_features),
          blocks_(rounded_up(n_features, FOURS) * BLOCK_BYTES, n_expected == UNKNOWN_NUMBER ? UNKNOWN_NUMBER : n_expected / BLOCK + 1) {}

    std::int64_t n_features() const noexcept { return n_features_; }

    // Reserve memory for n nodes in total. A failure changes nothing.
    void reserve(std::int64_t n_nodes) { blocks_.reserve(rounded_up(n_nodes, BLOCK) / BLOCK); }

    // Write the cells of a node: the next one, one that has moved, or one that replaces a withdrawn node.
    void enter(std::int64_t node, const std::uint8_t* cells) noexcept {
        const std::int64_t place = node % BLOCK;
        const int shift = place < BLOCK_BYTES ? 0 : 4;
        std::uint8_t* byte = blocks_[node / BLOCK] + place % BLOCK_BYTES;
        for (std::int64_t i = 0; i < n_features_; ++i, byte += BLOCK_BYTES) {
            *byte = static_cast<std::uint8_t>((*byte & (0xf0 >> shift)) | (cells[i] << shift));
        }
    }

    // Write the cells of one feature for all nodes of a block.
    void enter_block(std::int64_t number, std::int64_t feature, const std::uint8_t* cells) noexcept {
        std::uint8_t* bytes = blocks_[number] + feature * BLOCK_BYTES;
        for (std::int64_t j = 0; j < BLOCK_BYTES; ++j) bytes[j] = static_cast<std::uint8_t>(cells[j] | (cells[j + BLOCK_BYTES] << 4));
    }

    // The codes of a block: 32 bytes per feature; features are padded with cell 0 to a multiple of FOURS.
    const std::uint8_t* block(std::int64_t number) const noexcept { return blocks_[number]; }

private:
    std::int64_t n_features_;
    Rows<std::uint8_t> blocks_;
};

}  // namespace mlca::MLCA_LEVEL
