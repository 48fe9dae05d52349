// The nodes a second time, four bits an attribute, where byte shuffles find them.
//
// Nodes stand in blocks of 64. An attribute is one run of 32 bytes of a block: byte j holds the cell of node j in its
// low four bits and that of node j + 32 in its high ones. So one load brings an attribute of 64 nodes, and attributes
// can be picked in any order, as groups of attributes need it. Blocks never move (see Rows): threads may read while a
// node that they do not ask for is entered. Codes take a sixteenth of the weights' memory.
#pragma once

#include <cstdint>

#include "level.hpp"
#include "memory.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t BLOCK = 64;
inline constexpr std::int64_t BLOCK_BYTES = BLOCK / 2;
// Attributes are filled up to a multiple of this.
inline constexpr std::int64_t FOURS = 4;

inline constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

class Codes {
public:
    explicit Codes(std::int64_t n_attributes, std::int64_t n_expected = INT64_MAX)
        : n_attributes_(n_attributes), blocks_(rounded_up(n_attributes, FOURS) * BLOCK_BYTES, n_expected / BLOCK + 1) {}

    std::int64_t n_attributes() const noexcept { return n_attributes_; }

    // Make room for n nodes in all. If that fails nothing has changed.
    void reserve(std::int64_t n_nodes) { blocks_.reserve(rounded_up(n_nodes, BLOCK) / BLOCK); }

    // Write the cells of a node: the next one, one that has moved, or one in the place of a node that was withdrawn.
    void enter(std::int64_t node, const std::uint8_t* cells) noexcept {
        const std::int64_t place = node % BLOCK;
        const int shift = place < BLOCK_BYTES ? 0 : 4;
        std::uint8_t* byte = blocks_[node / BLOCK] + place % BLOCK_BYTES;
        for (std::int64_t i = 0; i < n_attributes_; ++i, byte += BLOCK_BYTES) {
            *byte = static_cast<std::uint8_t>((*byte & (0xf0 >> shift)) | (cells[i] << shift));
        }
    }

    // Write an attribute of all nodes of a block.
    void enter_block(std::int64_t number, std::int64_t attribute, const std::uint8_t* cells) noexcept {
        std::uint8_t* bytes = blocks_[number] + attribute * BLOCK_BYTES;
        for (std::int64_t j = 0; j < BLOCK_BYTES; ++j) bytes[j] = static_cast<std::uint8_t>(cells[j] | (cells[j + BLOCK_BYTES] << 4));
    }

    // 32 bytes an attribute; attributes are filled up with cells 0 to a multiple of FOURS.
    const std::uint8_t* block(std::int64_t number) const noexcept { return blocks_[number]; }

private:
    std::int64_t n_attributes_;
    Rows<std::uint8_t> blocks_;
};

}  // namespace mlca::MLCA_LEVEL
