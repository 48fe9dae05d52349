// Bitmaps: count the features that a row shares with each node, if all non-zeros of both are ones.
//
// Used in MLCA to compare sparse rows whose non-zeros are all ones with nodes of the same kind that have not moved. The
// number of features in which row and node differ determines their exact sum, so no screening is needed. Predicting
// Bibtex is twice as fast as with lists of nodes.
//
// Each feature has a list of the nodes that have it. An entry of the list covers a tile of 64 nodes: it holds the index
// of the tile, and a mask with one bit per node. So a list has at most one entry per tile, and never more entries than
// nodes. The masks of the newest tile are stored separately, one per feature, until the tile is full: a new node then
// writes to a few cache lines instead of to the ends of lists scattered in memory.
//
// Shared features are counted for all nodes of a tile at once. Counters are bit-sliced: bit k of planes[b, tile] is bit
// b of the count of node k of the tile. Logical operations then add to 64 counters at a time, in as many tiles at once
// as a vector holds. Four features at a time are first combined by full adders, so that only their carries reach the
// upper planes. There are no data-dependent branches: adding one mask after another, each as far as its carries reach,
// was five times slower.
//
// A node is entered when it is created. When it moves, its bits remain but its count is no longer used.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "base/memory.hpp"
#include "base/pair_rows.hpp"

namespace mlca::MLCA_LEVEL {

class BitmapCounts {
public:
    struct Space {
        Array<std::uint64_t> masks, planes, words;
        Array<std::int32_t> counts;
    };

    // Reserve memory for a node with these features, so that `enter` cannot fail.
    void reserve(std::int64_t node, const std::int32_t* features, std::int64_t n) {
        if (n > 0) {
            const std::int64_t known = *std::max_element(features, features + n) + std::int64_t{1};
            lists_.resize(known);
            grow_to(masks_, known);
        }
        if (!closes_tile(node)) return;
        for (std::int64_t i = 0; i < lists_.size(); ++i) lists_.make_room(i, 1);
    }

    // Set the next node's bit in the masks of its features.
    void enter(std::int64_t node, const std::int32_t* features, std::int64_t n) noexcept {
        const std::uint64_t bit = std::uint64_t{1} << (node % WIDTH);
        for (std::int64_t p = 0; p < n; ++p) masks_[features[p]] |= bit;
        if (closes_tile(node)) close_tile();
    }

    // Remove the newest node.
    void withdraw(std::int64_t node, const std::int32_t* features, std::int64_t n) noexcept {
        if (closes_tile(node)) open_tile();
        const std::uint64_t bit = std::uint64_t{1} << (node % WIDTH);
        for (std::int64_t p = 0; p < n; ++p) masks_[features[p]] ^= bit;
    }

    // Write to space.counts, for each of the first n_nodes nodes, how many of the row's features it has.
    void count(const std::int32_t* features, std::int64_t n, std::int64_t n_nodes, Space& space) const {
        const std::int64_t n_tiles = (n_nodes + WIDTH - 1) / WIDTH;
        const auto tiles = static_cast<std::size_t>(n_tiles);
        space.counts.assign(tiles * WIDTH, 0);
        space.words.resize(tiles * WIDTH / 8);
        space.masks.resize(TOGETHER_COUNTED * tiles);
        space.planes.resize(N_PLANES * tiles);
        for (std::int64_t low = 0; low < n; low += MOST) {
            const std::int64_t high = std::min(low + MOST, n);
            std::fill(space.planes.begin(), space.planes.end(), 0);
            for (std::int64_t first = low; first < high; first += TOGETHER_COUNTED) {
                unfold(features + first, std::min(TOGETHER_COUNTED, high - first), n_tiles, space.masks.data());
                add_four(space.masks.data(), space.planes.data(), n_tiles);
            }
            to_bytes(space.planes.data(), n_tiles, space.words.data());
            const auto* counts = reinterpret_cast<const unsigned char*>(space.words.data());
            for (std::size_t k = 0; k < space.counts.size(); ++k) space.counts[k] += counts[k];
        }
    }

private:
    static constexpr std::int64_t WIDTH = 64;
    // Maximum number of features counted at a time, so that a count fits into eight planes and into a byte.
    static constexpr std::int64_t MOST = 255;
    static constexpr std::int64_t N_PLANES = 8;
    static constexpr std::int64_t TOGETHER_COUNTED = 4;

    // For each byte value, a word whose eight bytes are the bits of that value.
    static constexpr std::array<std::uint64_t, 256> SPREAD = [] {
        std::array<std::uint64_t, 256> spread{};
        for (std::uint64_t byte = 0; byte < 256; ++byte) {
            for (int bit = 0; bit < 8; ++bit) spread[byte] |= ((byte >> bit) & 1) << (8 * bit);
        }
        return spread;
    }();

    static bool closes_tile(std::int64_t node) noexcept { return node % WIDTH == WIDTH - 1; }

    void close_tile() noexcept {
        for (std::size_t i = 0; i < masks_.size(); ++i) {
            if (masks_[i] == 0) continue;
            lists_.append(static_cast<std::int64_t>(i), youngest_, masks_[i]);
            masks_[i] = 0;
        }
        ++youngest_;
    }

    // Reopen the tile that was closed last.
    void open_tile() noexcept {
        --youngest_;
        for (std::size_t i = 0; i < masks_.size(); ++i) {
            auto& list = lists_[static_cast<std::int64_t>(i)];
            if (list.length == 0 || list.keys[list.length - 1] != youngest_) continue;
            --list.length;
            masks_[i] = list.values[list.length];
        }
    }

    // Write the masks of a few features for all tiles; tiles without an entry in the list get a mask of zero.
    void unfold(const std::int32_t* features, std::int64_t n, std::int64_t n_tiles, std::uint64_t* masks) const noexcept {
        std::fill_n(masks, TOGETHER_COUNTED * n_tiles, std::uint64_t{0});  // n_tiles may be 0
        for (std::int64_t j = 0; j < n; ++j) {
            if (features[j] >= static_cast<std::int64_t>(masks_.size())) continue;
            const auto& list = lists_[features[j]];
            std::uint64_t* row = masks + j * n_tiles;
            for (std::int32_t place = 0; place < list.length; ++place) {
                if (list.keys[place] < n_tiles) row[list.keys[place]] = list.values[place];
            }
            if (youngest_ < n_tiles) row[youngest_] = masks_[features[j]];
        }
    }

    // Add four masks to the bit-sliced counters.
    [[gnu::noinline]] static void add_four(const std::uint64_t* __restrict masks, std::uint64_t* __restrict planes, std::int64_t n_tiles) {
        const std::uint64_t *first = masks, *second = first + n_tiles, *third = second + n_tiles, *fourth = third + n_tiles;
        for (std::int64_t tile = 0; tile < n_tiles; ++tile) {
            std::uint64_t carry_a, carry_b, carry;
            std::uint64_t ones = full_add(planes[tile], first[tile], second[tile], carry_a);
            ones = full_add(ones, third[tile], fourth[tile], carry_b);
            planes[n_tiles + tile] = full_add(planes[n_tiles + tile], carry_a, carry_b, carry);
            planes[tile] = ones;
            for (std::int64_t level = 2; level < N_PLANES; ++level) {
                const std::uint64_t before = planes[level * n_tiles + tile];
                planes[level * n_tiles + tile] = before ^ carry;
                carry &= before;
            }
        }
    }

    // Bitwise full adder.
    static std::uint64_t full_add(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t& carry) noexcept {
        const std::uint64_t either = a ^ b;
        carry = (a & b) | (either & c);
        return either ^ c;
    }

    // Convert bit-sliced counters to bytes, eight per word, with the first node at the lowest address.
    [[gnu::noinline]] static void to_bytes(const std::uint64_t* __restrict planes, std::int64_t n_tiles, std::uint64_t* __restrict words) {
        for (std::int64_t tile = 0; tile < n_tiles; ++tile) {
            for (int part = 0; part < 8; ++part) {
                std::uint64_t word = 0;
                for (std::int64_t level = 0; level < N_PLANES; ++level) {
                    word += SPREAD[(planes[level * n_tiles + tile] >> (8 * part)) & 255] << level;
                }
                if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
                words[8 * tile + part] = word;
            }
        }
    }

    PairRows<std::uint64_t> lists_;
    Array<std::uint64_t> masks_;
    std::int32_t youngest_ = 0;
};

}  // namespace mlca::MLCA_LEVEL
